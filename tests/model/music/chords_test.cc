// The chords that the originals hear, data/README.md.

#include "model/music/chords.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/music/music_data.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<MidiNote> NotesOf(const nlohmann::json& notes) {
  std::vector<MidiNote> made;
  for (const auto& note : notes)
    made.push_back({note[0], note[1], note[2], 80});
  return made;
}

// One instrument; its file ends with its last note.
Instruments MusicOf(std::vector<MidiNote> notes) {
  Instruments music;
  for (const MidiNote& note : notes) {
    music.ticks = std::max(music.ticks, note.end + 1);
  }
  music.notes.push_back(std::move(notes));
  return music;
}

std::vector<std::string> Names(const std::vector<NamedChord>& chords) {
  std::vector<std::string> names;
  for (const NamedChord& chord : chords) names.push_back(chord.name);
  return names;
}

TEST(RemiChords, AreThoseOfTheOriginal) {
  int chords = 0;
  for (const auto& example : nlohmann::json::parse(MusicFile("chords.json"))) {
    nlohmann::json found = nlohmann::json::array();
    for (const NamedChord& chord : RemiChords(NotesOf(example["notes"]))) {
      found.push_back({chord.start, chord.name});
      ++chords;
    }
    EXPECT_EQ(found, example["remi"]) << example["notes"];
  }
  EXPECT_GT(chords, 100);
}

TEST(BeatChords, AreThoseOfTheOriginal) {
  int beats = 0;
  for (const auto& example : nlohmann::json::parse(MusicFile("chords.json"))) {
    const auto found = BeatChords(MusicOf(NotesOf(example["notes"])));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, example["beats"].get<std::vector<std::string>>())
        << example["notes"];
    beats += static_cast<int>(found->size());
  }
  EXPECT_GT(beats, 300);
}

TEST(RemiChords, LastTwoBeatsWhereTheyFitBetterThanFour) {
  // C major for two beats, then F sharp major: together they are no chord.
  const std::vector<MidiNote> notes = {
      {0, 960, 48, 80},    {0, 960, 52, 80},    {0, 960, 55, 80},
      {960, 1920, 54, 80}, {960, 1920, 58, 80}, {960, 1920, 61, 80}};
  const std::vector<NamedChord> chords = RemiChords(notes);
  EXPECT_THAT(Names(chords), ElementsAre("C:maj", "F#:maj"));
  EXPECT_EQ(chords[1].start, 960);
}

TEST(RemiChords, WhatIsNoChordIsLeftOutAndTheFirstChordBeginsWithTheMusic) {
  // Two semitones have no third; then G major.
  const std::vector<MidiNote> notes = {
      {0, 1920, 60, 80},    {0, 1920, 61, 80},    {1920, 3840, 55, 80},
      {1920, 3840, 59, 80}, {1920, 3840, 62, 80}, {3840, 5760, 40, 80}};
  const std::vector<NamedChord> chords = RemiChords(notes);
  EXPECT_THAT(Names(chords), ElementsAre("G:maj"));
  EXPECT_EQ(chords[0].start, 0);
  EXPECT_THAT(RemiChords({notes.data(), 2}), IsEmpty());
}

TEST(RemiChords, SilenceIsAChordOfItsOwn) {
  const std::vector<MidiNote> notes = {{0, 480, 48, 80},
                                       {0, 480, 52, 80},
                                       {5000, 5760, 55, 80},
                                       {5000, 5760, 59, 80}};
  EXPECT_THAT(Names(RemiChords(notes)), ElementsAre("C:maj", "N:N", "G:maj"));
}

TEST(RemiChords, OfEqualRootsTheLowestWins) {
  // C, E and G sharp are augmented over each of them.
  const auto over = [](int bass) {
    return Names(RemiChords(std::vector<MidiNote>{
        {0, 960, bass, 80}, {0, 960, bass + 4, 80}, {0, 960, bass + 8, 80}}));
  };
  EXPECT_THAT(over(48), ElementsAre("C:aug"));
  EXPECT_THAT(over(52), ElementsAre("E:aug"));
  EXPECT_THAT(over(56), ElementsAre("G#:aug"));
}

TEST(BeatChords, AChordNeedsABassAndHalfOfItsTime) {
  const auto chord = [](int64_t length) {
    return *BeatChords(MusicOf(
        {{0, length, 48, 80}, {0, length, 52, 80}, {0, length, 55, 80}}));
  };
  EXPECT_THAT(chord(480), ElementsAre("C_M_C", "C_M_C"));
  EXPECT_THAT(chord(100), ElementsAre("N_N_N"));
}

TEST(BeatChords, TheBassTellsChordsOfTheSameNotesApart) {
  // A minor seventh is a sixth over C: the upper notes are C major.
  const auto over = [](int bass) {
    return BeatChords(MusicOf({{0, 470, bass, 80},
                               {0, 470, 60, 80},
                               {0, 470, 64, 80},
                               {0, 470, 67, 80}}))
        ->front();
  };
  EXPECT_EQ(over(45), "A_m7_A");
  EXPECT_EQ(over(40), "C_M_E");
}

TEST(BeatChords, RefusesMoreNotesThanCanBeHeard) {
  const std::vector<MidiNote> notes(2000, {0, 480 * 30000, 60, 80});
  EXPECT_EQ(BeatChords(MusicOf(notes)).status(),
            absl::InvalidArgumentError(
                "the MIDI file has too many notes that sound at once"));
}

}  // namespace
}  // namespace txl
