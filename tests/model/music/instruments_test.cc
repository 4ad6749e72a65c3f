// Notes and tempi as miditoolkit reads them.

#include "model/music/instruments.h"

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/music/music_data.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Notes = std::vector<std::tuple<int64_t, int64_t, int>>;

Instruments Read(const std::string& midi) {
  const auto file = ParseMidi(midi);
  EXPECT_TRUE(file.ok()) << file.status();
  return ReadInstruments(*file);
}

Instruments Read(const TrackBytes& track) { return Read(MidiOf({track})); }

Notes NotesOf(const Instruments& music, size_t instrument = 0) {
  Notes notes;
  if (instrument >= music.notes.size()) return notes;
  for (const MidiNote& note : music.notes[instrument]) {
    notes.emplace_back(note.start, note.end, note.pitch);
  }
  return notes;
}

std::vector<std::pair<int64_t, int>> TempiOf(const Instruments& music) {
  std::vector<std::pair<int64_t, int>> tempi;
  for (const TempoChange& tempo : music.tempi) {
    tempi.emplace_back(tempo.start, static_cast<int>(tempo.bpm + 0.5));
  }
  return tempi;
}

TEST(Instruments, AnEndEndsAllNotesOfItsPitchAndChannel) {
  const Instruments music = Read(TrackBytes()
                                     .On(0, 60, 10)
                                     .On(100, 60, 20)
                                     .On(100, 60, 30, 1)
                                     .Off(200, 60)
                                     .Off(300, 60));
  EXPECT_EQ(NotesOf(music), Notes({{0, 200, 60}, {100, 200, 60}}));
  EXPECT_EQ(music.notes[0][0].velocity, 10);
  EXPECT_EQ(music.notes[0][1].velocity, 20);
  EXPECT_EQ(music.dropped, 1);
}

TEST(Instruments, ANoteThatBeginsWhereOthersEndGoesOn) {
  const Instruments music =
      Read(TrackBytes().On(0, 60).On(200, 60).Off(200, 60).Off(300, 60));
  EXPECT_EQ(NotesOf(music), Notes({{0, 200, 60}, {200, 300, 60}}));
  EXPECT_EQ(music.dropped, 0);
}

TEST(Instruments, ANoteWithoutALengthIsDropped) {
  const Instruments music =
      Read(TrackBytes().On(50, 60).Off(50, 60).Off(90, 60));
  EXPECT_THAT(music.notes, IsEmpty());
  EXPECT_EQ(music.dropped, 1);
}

TEST(Instruments, AreTrackChannelAndProgramInTheOrderOfTheirFirstEnds) {
  const Instruments music =
      Read(MidiOf({TrackBytes()
                       .On(0, 60, 64, 2)
                       .On(0, 61, 64, 1)
                       .Off(100, 61, 1)
                       .Off(200, 60, 2)
                       .Raw(200, {0xc1, 5})
                       .On(300, 62, 64, 1)
                       .Off(400, 62, 1),
                   TrackBytes().On(0, 63, 64, 1).Off(50, 63, 1)}));
  ASSERT_EQ(music.notes.size(), 4u);
  EXPECT_EQ(NotesOf(music, 0), Notes({{0, 100, 61}}));
  EXPECT_EQ(NotesOf(music, 1), Notes({{0, 200, 60}}));
  EXPECT_EQ(NotesOf(music, 2), Notes({{300, 400, 62}}));
  EXPECT_EQ(NotesOf(music, 3), Notes({{0, 50, 63}}));
}

TEST(Instruments, ATempoAtTheBeginningReplacesAllBefore) {
  EXPECT_THAT(TempiOf(Read(TrackBytes().Tempo(480, 90))),
              ElementsAre(Pair(0, 120), Pair(480, 90)));
  EXPECT_THAT(TempiOf(Read(MidiOf({TrackBytes().Tempo(0, 100).Tempo(480, 90),
                                   TrackBytes().Tempo(0, 60)}))),
              ElementsAre(Pair(0, 60)));
}

TEST(Instruments, ATempoThatDoesNotChangeIsNone) {
  EXPECT_THAT(
      TempiOf(Read(TrackBytes().Tempo(0, 100).Tempo(480, 100).Tempo(960, 80))),
      ElementsAre(Pair(0, 100), Pair(960, 80)));
}

TEST(Instruments, TicksAreScaledToTheClosestAndANoteKeepsATick) {
  const Instruments music = Read(
      MidiOf({TrackBytes().On(3, 60).Off(5, 60).On(5, 61).Off(6, 61)}, 960));
  // 1.5 and 2.5 ticks go up; a half tick is one.
  EXPECT_EQ(NotesOf(music), Notes({{2, 3, 60}, {3, 4, 61}}));
  EXPECT_EQ(music.ticks, 4);
}

}  // namespace
}  // namespace txl
