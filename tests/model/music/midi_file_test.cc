#include "model/music/midi_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/music/music_data.h"

namespace txl {
namespace {

using Kind = MidiEvent::Kind;
using testing::HasSubstr;

std::string ErrorOf(const std::string& bytes) {
  const auto file = ParseMidi(bytes);
  if (file.ok()) return "none";
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

// A file with one track of these bytes.
std::string WithTrack(const std::string& track) {
  return MidiHeader(0, 1, 96) + Chunk("MTrk", track);
}

TEST(MidiFile, ReadsNotesProgramsAndTempi) {
  const auto file = ParseMidi(MidiOf({TrackBytes()
                                          .Tempo(0, 120)
                                          .Raw(1, {0xc3, 40})
                                          .On(200, 60, 99, 3)
                                          .Off(20000, 60, 3)}));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->ticks_per_beat, 480);
  EXPECT_EQ(file->last_tick, 20000);
  ASSERT_EQ(file->tracks.size(), 1u);
  const std::vector<MidiEvent>& events = file->tracks[0];
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].kind, Kind::kTempo);
  EXPECT_EQ(events[0].value, 500'000);
  EXPECT_EQ(events[1].kind, Kind::kProgram);
  EXPECT_EQ(events[1].tick, 1);
  EXPECT_EQ(events[1].value, 40);
  EXPECT_EQ(events[2].kind, Kind::kNoteOn);
  EXPECT_EQ(events[2].channel, 3);
  EXPECT_EQ(events[2].pitch, 60);
  EXPECT_EQ(events[2].value, 99);
  EXPECT_EQ(events[3].kind, Kind::kNoteOff);
  EXPECT_EQ(events[3].tick, 20000);
}

TEST(MidiFile, ANoteOnWithoutVelocityIsANoteOff) {
  const auto file = ParseMidi(MidiOf({TrackBytes().On(0, 60, 0)}));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tracks[0][0].kind, Kind::kNoteOff);
}

TEST(MidiFile, RunningStatusLastsOverMetaEventsButNotOverSystemExclusives) {
  const std::string note("\0\x90\x3c\x40", 4), more("\5\x3e\x40", 3);
  const std::string text("\0\xff\1\2hi", 6), exclusive("\0\xf0\2\1\xf7", 5);
  const auto file = ParseMidi(WithTrack(note + more + text + more));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tracks[0].size(), 3u);
  EXPECT_EQ(file->tracks[0][2].tick, 10);
  EXPECT_EQ(file->tracks[0][2].pitch, 62);
  EXPECT_EQ(ErrorOf(WithTrack(note + exclusive + more)),
            "the MIDI file has 0x3E at byte 32, where an event should begin");
}

TEST(MidiFile, EventsThatSayNothingOfNotesAreSkipped) {
  const auto file = ParseMidi(MidiOf({TrackBytes()
                                          .Raw(0, {0xa0, 60, 1})
                                          .Raw(0, {0xb0, 64, 127})
                                          .Raw(0, {0xd0, 3})
                                          .Raw(0, {0xe0, 0, 64})
                                          .Raw(7, {0xf7, 1, 5})}));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->tracks[0].empty());
  EXPECT_EQ(file->last_tick, 7);
}

TEST(MidiFile, WhatFollowsTheEndOfATrackOrOfTheLastTrackIsSkipped) {
  const auto file =
      ParseMidi(WithTrack(std::string("\0\xff\x2f\0\xfd", 5)) + "garbage");
  EXPECT_TRUE(file.ok()) << file.status();
}

TEST(MidiFile, ChunksOfOtherKindsAreSkippedAndDoNotCountAsTracks) {
  const auto file = ParseMidi(MidiHeader(1, 1, 96) + Chunk("XFIH", "abc") +
                              TrackBytes().On(0, 60).Chunk());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tracks.size(), 1u);
  EXPECT_EQ(file->tracks[0].size(), 1u);
}

TEST(MidiFile, RefusesOtherFilesByName) {
  const std::string not_midi =
      "the file is not a MIDI file: it does not begin with MThd";
  EXPECT_EQ(ErrorOf(""), not_midi);
  EXPECT_EQ(ErrorOf("MThx"), not_midi);
  EXPECT_EQ(ErrorOf("RIFFxxxxRMIDdata"), not_midi);
  EXPECT_EQ(ErrorOf(MidiHeader(2, 0, 96)),
            "the MIDI file has format 2; formats 0 and 1 can be read");
  EXPECT_EQ(ErrorOf(MidiHeader(0, 0, 0xe728)),
            "the MIDI file counts time in SMPTE frames, not in beats");
  EXPECT_EQ(ErrorOf(MidiHeader(0, 0, 0)),
            "the MIDI file has no ticks per beat");
  EXPECT_EQ(ErrorOf(Chunk("MThd", "abcde")),
            "the MIDI file has a header of less than 6 bytes");
}

TEST(MidiFile, TellsWhereAFileIsCutOff) {
  const std::string whole = MidiOf({TrackBytes().On(0, 60).Off(480, 60)});
  for (size_t size = 4; size < whole.size(); ++size) {
    EXPECT_EQ(ErrorOf(whole.substr(0, size)),
              "the MIDI file is cut off at byte " + std::to_string(size));
  }
}

TEST(MidiFile, TellsWhichByteIsNoEvent) {
  EXPECT_EQ(ErrorOf(WithTrack(std::string("\0\x3c", 2))),
            "the MIDI file has 0x3C at byte 23, where an event should begin");
  EXPECT_EQ(ErrorOf(WithTrack(std::string("\0\xf4", 2))),
            "the MIDI file has 0xF4 at byte 23, which no event of a file "
            "begins with");
  EXPECT_EQ(ErrorOf(WithTrack(std::string("\0\x90\x3c\x90", 4))),
            "the MIDI file has 0x90 at byte 25, where data should be");
  EXPECT_THAT(ErrorOf(WithTrack("\xff\xff\xff\xff\x7f")),
              HasSubstr("a number of more than 4 bytes before byte 26"));
  EXPECT_EQ(ErrorOf(WithTrack(std::string("\0\xff\x51\3\0\0\0", 7))),
            "the MIDI file has a tempo of no time for a beat");
  EXPECT_EQ(ErrorOf(WithTrack(std::string("\0\x90\x3c", 3)) + "MTrk"),
            "the MIDI file has a track that ends within an event, at byte 25");
}

TEST(MidiFile, HasALongestLength) {
  const uint32_t most = static_cast<uint32_t>(kMostMidiBeats) * 96;
  EXPECT_EQ(ErrorOf(MidiOf({TrackBytes().On(most - 1, 60)}, 96)), "none");
  EXPECT_EQ(ErrorOf(MidiOf({TrackBytes().On(most, 60)}, 96)),
            "the MIDI file is longer than 32768 beats");
}

// A header that promises a lot takes no memory for it.
TEST(MidiFile, MissingTracksAreNoticed) {
  EXPECT_EQ(ErrorOf(MidiHeader(1, 0xffff, 96)),
            "the MIDI file is cut off at byte 14");
  EXPECT_EQ(ErrorOf(MidiHeader(0, 1, 96) + "MTrk\xff\xff\xff\xff"),
            "the MIDI file is cut off at byte 22");
}

}  // namespace
}  // namespace txl
