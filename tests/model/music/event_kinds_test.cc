// The grammar of each family: all that the encoders write obeys it, and what no
// piece has is forbidden.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/music/event_ids.h"
#include "model/music/midi_encoder.h"
#include "model/text/byte_vocabulary.h"
#include "tests/model/music/music_data.h"
#include "tests/model/sampling/some_kinds.h"

namespace txl {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kFamiliesWithKinds[] = {"remi", "remi_chords",
                                              "compound_word", "musicautobot"};

bool MayFollow(const TokenKinds& kinds, int32_t before, int32_t id) {
  const KindRule& rule = kinds.After(before);
  return rule.restricts == 0 || HoldsKind(rule.next, kinds.KindOf(id));
}

// The events of a family that may stand behind one, each kind by one of them.
std::set<std::string> NextKinds(const std::string& family,
                                const std::string& event) {
  const auto vocabulary = FamilyVocabulary(family);
  const std::vector<TokenKind> kinds = KindsOfMusic(*vocabulary);
  const auto table = TableOf(kinds, vocabulary->size());
  const int32_t before = EventIds(*vocabulary).Find(event);
  EXPECT_GE(before, 0) << event;
  std::set<std::string> next;
  for (int32_t id = 0; id < vocabulary->size(); ++id) {
    if (!MayFollow(*table, before, id)) continue;
    const uint8_t kind = table->KindOf(id);
    next.insert(kind == kNoTokenKind ? "none" : kinds[kind].name);
  }
  return next;
}

class KindsOfFamily : public testing::TestWithParam<const char*> {};

TEST_P(KindsOfFamily, AreObeyedByAllThatTheEncoderWrites) {
  const auto vocabulary = FamilyVocabulary(GetParam());
  const auto encoder = MidiEncoder::Make(*vocabulary);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto kinds = TableOf(KindsOfMusic(*vocabulary), vocabulary->size());
  std::set<std::pair<int, int>> seen;
  for (int file = 0; file < 24; ++file) {
    const std::string name =
        std::string(file < 10 ? "0" : "") + std::to_string(file) + ".mid";
    auto found = encoder->Encode(MusicFile(name));
    ASSERT_TRUE(found.ok()) << name << ": " << found.status();
    if (encoder->end_id() >= 0) found->ids.push_back(encoder->end_id());
    for (size_t i = 0; i + 1 < found->ids.size(); ++i) {
      const int32_t before = found->ids[i], id = found->ids[i + 1];
      ASSERT_TRUE(MayFollow(*kinds, before, id))
          << name << ": " << EventName(*vocabulary, id) << " behind "
          << EventName(*vocabulary, before);
      seen.insert({kinds->KindOf(before), kinds->KindOf(id)});
    }
    EXPECT_NE(kinds->KindOf(found->ids.front()), kNoTokenKind);
  }
  // No rule is looser than music is by much: most allowed pairs occur.
  int allowed = 0;
  for (size_t k = 0; k < kinds->kinds().size(); ++k) {
    allowed += static_cast<int>(kinds->kinds()[k].next.value().size());
  }
  EXPECT_GE(static_cast<int>(seen.size()), allowed * 2 / 3);
}

// An event without an id leaves out those that it comes with.
TEST_P(KindsOfFamily, AreObeyedByPiecesWithEventsThatHaveNoIds) {
  const auto whole = FamilyVocabulary(GetParam());
  std::vector<std::string> without;
  for (int32_t id = 0; id < whole->size(); ++id) {
    const std::string event = EventName(*whole, id);
    const bool is_named = event == "d1" || event.starts_with("Beat_") ||
                          event == "Position_1/16" || event == "Bar_None" ||
                          event.starts_with("xx") || event == "EOS_None" ||
                          event == "Note Velocity_21";
    if (!is_named && id % 3 != 0) without.push_back(event);
  }
  const auto vocabulary = FamilyVocabulary(GetParam(), without);
  const auto encoder = MidiEncoder::Make(*vocabulary);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto kinds = TableOf(KindsOfMusic(*vocabulary), vocabulary->size());
  int64_t left_out = 0;
  for (const char* name : {"12.mid", "15.mid", "19.mid", "23.mid"}) {
    const auto found = encoder->Encode(MusicFile(name));
    ASSERT_TRUE(found.ok()) << name << ": " << found.status();
    left_out += static_cast<int64_t>(found->left_out.size());
    for (size_t i = 0; i + 1 < found->ids.size(); ++i) {
      ASSERT_TRUE(MayFollow(*kinds, found->ids[i], found->ids[i + 1]))
          << name << ": " << EventName(*vocabulary, found->ids[i + 1])
          << " behind " << EventName(*vocabulary, found->ids[i]);
    }
  }
  EXPECT_GT(left_out, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, KindsOfFamily,
                         testing::ValuesIn(kFamiliesWithKinds));

TEST(KindsOfMusic, RemiWritesPositionThenNoteInThreeEvents) {
  EXPECT_THAT(NextKinds("remi", "Bar_None"),
              UnorderedElementsAre("Bar", "Position"));
  EXPECT_THAT(NextKinds("remi", "Position_3/16"),
              UnorderedElementsAre("Tempo Class", "Note Velocity"));
  EXPECT_THAT(NextKinds("remi", "Note Velocity_9"),
              UnorderedElementsAre("Note On"));
  EXPECT_THAT(NextKinds("remi", "Note On_60"),
              UnorderedElementsAre("Note Duration"));
  EXPECT_THAT(NextKinds("remi", "Note Duration_3"),
              UnorderedElementsAre("Bar", "Position"));
  EXPECT_THAT(NextKinds("remi", "Tempo Class_mid"),
              UnorderedElementsAre("Tempo Value"));
}

TEST(KindsOfMusic, ChordsAreAKindWhereTheDictionaryHasThem) {
  EXPECT_THAT(NextKinds("remi_chords", "Position_1/16"),
              UnorderedElementsAre("Chord", "Tempo Class", "Note Velocity"));
  EXPECT_THAT(NextKinds("remi_chords", "Chord_C:maj"),
              UnorderedElementsAre("Bar", "Position"));
}

TEST(KindsOfMusic, CompoundWordEndsAPieceBehindABar) {
  EXPECT_THAT(NextKinds("compound_word", "Bar_None"),
              UnorderedElementsAre("Bar", "Beat", "EOS"));
  EXPECT_THAT(NextKinds("compound_word", "EOS_None"),
              UnorderedElementsAre("Bar"));
  EXPECT_THAT(NextKinds("compound_word", "Note_Pitch_60"),
              UnorderedElementsAre("Note_Velocity"));
  EXPECT_THAT(NextKinds("compound_word", "Note_Velocity_64"),
              UnorderedElementsAre("Note_Duration"));
}

TEST(KindsOfMusic, MusicautobotHasADurationBehindEachNoteAndRest) {
  EXPECT_THAT(NextKinds("musicautobot", "n60"),
              UnorderedElementsAre("Duration"));
  EXPECT_THAT(NextKinds("musicautobot", "xxsep"),
              UnorderedElementsAre("Duration"));
  EXPECT_THAT(NextKinds("musicautobot", "d4"),
              UnorderedElementsAre("Note", "Separator"));
  EXPECT_THAT(NextKinds("musicautobot", "xxpad"),
              UnorderedElementsAre("Note", "Separator"));
  EXPECT_THAT(NextKinds("musicautobot", "xxbos"), UnorderedElementsAre("Pad"));
}

TEST(KindsOfMusic, EventsThatNoPieceHasAreOfNoKind) {
  const auto vocabulary = FamilyVocabulary("musicautobot");
  const EventIds events(*vocabulary);
  const auto kinds = TableOf(KindsOfMusic(*vocabulary), vocabulary->size());
  for (const char* event : {"xxmask", "xxcseq", "xxeos", "mt3", "dummy0"}) {
    EXPECT_EQ(kinds->KindOf(events.Find(event)), kNoTokenKind) << event;
  }
}

TEST(KindsOfMusic, OtherVocabulariesHaveNone) {
  EXPECT_THAT(KindsOfMusic(ByteVocabulary()), IsEmpty());
  EXPECT_THAT(KindsOfMusic(*EventVocabulary({"Bar_None", "Note On_60"})),
              IsEmpty());
}

}  // namespace
}  // namespace txl
