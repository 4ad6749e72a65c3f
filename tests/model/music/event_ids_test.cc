#include "model/music/event_ids.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/music/music_data.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

EventIds Events() {
  return EventIds(*EventVocabulary(
      {"Bar_None", "Note On_60", "Velocity_40", "Velocity_50", "Chord_C:maj"}));
}

TEST(EventIds, FindsNamesWithTheirSpaces) {
  EXPECT_EQ(Events().Find("Note On_60"), 1);
  EXPECT_EQ(Events().Find("Note%20On_60"), -1);
  EXPECT_FALSE(Events().Has("Bar"));
  EXPECT_TRUE(Events().HasPrefix("Chord_"));
  EXPECT_FALSE(Events().HasPrefix("Tempo_"));
}

TEST(EventIds, TheClosestValueIsTheSmallerOneOfTwo) {
  for (const auto& [value, closest] :
       {std::pair(0, 40), {40, 40}, {45, 40}, {46, 50}, {50, 50}, {99, 50}}) {
    EXPECT_EQ(Events().Closest("Velocity", value), closest) << value;
  }
  EXPECT_EQ(Events().Closest("Tempo", 7), 7);
}

TEST(EventList, AddsAllEventsOrNoneAndCountsTheFirstThatIsMissing) {
  const EventIds events = Events();
  EventList list(events);
  list.Add({"Bar_None", "Note On_60"});
  list.Add({"Bar_None", "Note On_61", "Note On_62"});
  list.Add({"Note On_61"});
  list.LeaveOut("pedal", 3);
  list.LeaveOut("nothing", 0);
  EXPECT_EQ(list.Closest("Velocity", 41), 40);
  const MidiIds taken = list.Take();
  EXPECT_THAT(taken.ids, ElementsAre(0, 1));
  ASSERT_EQ(taken.left_out.size(), 3u);
  EXPECT_EQ(taken.left_out[0].what, "Note On_61");
  EXPECT_EQ(taken.left_out[0].count, 2);
  EXPECT_EQ(taken.left_out[1].what, "Velocity_41");
  EXPECT_EQ(taken.left_out[2].what, "pedal");
  EXPECT_EQ(taken.left_out[2].count, 3);
}

}  // namespace
}  // namespace txl
