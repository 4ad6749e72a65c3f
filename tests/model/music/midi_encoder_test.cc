// The rules of each family in small, by hand from the originals' code, and what
// the ids leave out.

#include "model/music/midi_encoder.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"
#include "tests/model/music/music_data.h"

namespace txl {
namespace {

using LeftOutMap = std::map<std::string, int64_t>;
using testing::HasSubstr;
using testing::Not;

struct Encoded {
  std::string events;  // joined by spaces, those of names as "_"
  LeftOutMap left_out;
};

Encoded Encode(const Vocabulary& vocabulary, const std::string& midi) {
  const auto encoder = MidiEncoder::Make(vocabulary);
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  const auto found = encoder->Encode(midi);
  EXPECT_TRUE(found.ok()) << found.status();
  Encoded encoded;
  if (!found.ok()) return encoded;
  encoded.events = absl::StrJoin(
      found->ids, " ", [&vocabulary](std::string* out, int32_t id) {
        *out += absl::StrReplaceAll(vocabulary.TokenBytes(id), {{"%20", "_"}});
      });
  for (const LeftOut& each : found->left_out) {
    encoded.left_out[each.what] = each.count;
  }
  return encoded;
}

Encoded Encode(const std::string& family, const std::string& midi) {
  return Encode(*FamilyVocabulary(family), midi);
}

std::string ErrorOf(const std::string& family, const std::string& midi) {
  const auto found = MidiEncoder::Make(*FamilyVocabulary(family))->Encode(midi);
  if (found.ok()) return "none";
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(found.status().message());
}

constexpr const char* kFamilies[] = {"remi", "remi_chords", "compound_word",
                                     "musicautobot"};

TEST(MidiEncoder, NeedsAVocabularyOfMusic) {
  const auto encoder = MidiEncoder::Make(ByteVocabulary());
  EXPECT_EQ(encoder.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(encoder.status().message(), HasSubstr("of kind bytes"));
  EXPECT_FALSE(
      MidiEncoder::Make(*EventVocabulary({"Bar_None", "Beat_0"})).ok());
}

TEST(MidiEncoder, TellsTheEventThatEndsAPieceInTraining) {
  const auto end = [](const std::string& family) {
    const auto vocabulary = FamilyVocabulary(family);
    return vocabulary->TokenBytes(MidiEncoder::Make(*vocabulary)->end_id());
  };
  EXPECT_EQ(end("compound_word"), "EOS_None");
  EXPECT_EQ(end("remi"), "");
  EXPECT_EQ(end("musicautobot"), "");
}

TEST(MidiEncoder, RefusesFilesWithoutNotes) {
  for (const char* family : kFamilies) {
    EXPECT_EQ(ErrorOf(family, MidiOf({TrackBytes().Tempo(0, 90)})),
              "the MIDI file has no note to encode");
    EXPECT_THAT(ErrorOf(family, "text"), HasSubstr("is not a MIDI file"));
  }
}

// The last line of the grid is the one before the last note: that note moves to
// it even from a later line.
TEST(RemiEvents, NotesMoveToTheClosestLineBeforeTheLastNote) {
  const Encoded found = Encode("remi", MidiOf({TrackBytes()
                                                   .On(61, 60, 7)
                                                   .Off(100, 60)
                                                   .On(480, 62, 127)
                                                   .Off(960, 62)}));
  EXPECT_EQ(found.events,
            "Bar_None "
            "Position_1/16 Tempo_Class_mid Tempo_Value_30 "
            "Position_2/16 Note_Velocity_1 Note_On_60 Note_Duration_0 "
            "Position_4/16 Note_Velocity_31 Note_On_62 Note_Duration_7");
  EXPECT_EQ(found.left_out, LeftOutMap());
}

TEST(RemiEvents, BarsWithoutNotesAreSkippedAndEachBeatHasItsTempo) {
  const Encoded found = Encode("remi", MidiOf({TrackBytes()
                                                   .Tempo(0, 20)
                                                   .Tempo(480, 210)
                                                   .Tempo(700, 100)
                                                   .Tempo(960, 180)
                                                   .Tempo(1440, 250)
                                                   .On(1560, 60)
                                                   .Off(1600, 60)
                                                   .On(7800, 60)
                                                   .Off(7900, 60)}));
  EXPECT_EQ(found.events,
            "Bar_None "
            "Position_1/16 Tempo_Class_slow Tempo_Value_0 "
            // 210 is in no class; the tempo before is repeated.
            "Position_5/16 Tempo_Class_slow Tempo_Value_0 "
            "Position_9/16 Tempo_Class_fast Tempo_Value_30 "
            "Position_13/16 Tempo_Class_fast Tempo_Value_59 "
            "Position_14/16 Note_Velocity_16 Note_On_60 Note_Duration_0 "
            "Bar_None "
            "Position_1/16 Note_Velocity_16 Note_On_60 Note_Duration_1");
  EXPECT_EQ(found.left_out,
            LeftOutMap({{"tempo that begins within a beat", 1}}));
}

TEST(RemiEvents, ChordsComeFirstWhereTheVocabularyHasThem) {
  TrackBytes track;
  for (const int pitch : {48, 64, 67}) track.On(0, pitch);
  for (const int pitch : {48, 64, 67}) track.Off(1920, pitch);
  for (const int pitch : {57, 60, 64}) track.On(1920, pitch);
  for (const int pitch : {57, 60, 64}) track.Off(3840, pitch);
  const std::string midi = MidiOf({track.On(3960, 60).Off(4080, 60)});
  const std::string found = Encode("remi_chords", midi).events;
  EXPECT_THAT(found, testing::StartsWith("Bar_None Position_1/16 Chord_C:maj "
                                         "Position_1/16 Tempo_Class_mid "));
  EXPECT_THAT(found, HasSubstr("Bar_None Position_1/16 Chord_A:min Position_1/"
                               "16 Note_Velocity_16 Note_On_57"));
  EXPECT_THAT(Encode("remi", midi).events, Not(HasSubstr("Chord")));
}

TEST(RemiEvents, AnEventWithoutAnIdTakesItsNoteWithIt) {
  const std::string midi = MidiOf({TrackBytes()
                                       .On(0, 109)
                                       .Off(120, 109)
                                       .On(480, 60, 100)
                                       .Off(600, 60)
                                       .On(600, 60, 60)
                                       .Off(720, 60)});
  const auto vocabulary =
      FamilyVocabulary("remi", {"Note On_109", "Note Velocity_25"});
  const Encoded found = Encode(*vocabulary, midi);
  EXPECT_EQ(found.events,
            "Bar_None Position_1/16 Tempo_Class_mid Tempo_Value_30 "
            // The loudest that the original knows.
            "Position_5/16 Note_Velocity_21 Note_On_60 Note_Duration_1 "
            "Position_5/16 Note_Velocity_15 Note_On_60 Note_Duration_1");
  EXPECT_EQ(found.left_out,
            LeftOutMap({{"Note On_109", 1}, {"Note Velocity_25", 1}}));
}

TEST(RemiEvents, OnlyTheFirstInstrumentIsRead) {
  const std::string midi = MidiOf({TrackBytes()
                                       .On(0, 72, 64, 1)
                                       .On(0, 60)
                                       .Off(480, 60)
                                       .Off(960, 72, 1)
                                       .On(960, 62)});
  const Encoded found = Encode("remi", midi);
  EXPECT_THAT(found.events, HasSubstr("Note_On_60"));
  EXPECT_THAT(found.events, Not(HasSubstr("Note_On_72")));
  EXPECT_EQ(found.left_out,
            LeftOutMap({{"note of another instrument than the first", 1},
                        {"note without an end", 1}}));
}

TEST(RemiEvents, OtherDivisionsMeanTheSameMusic) {
  for (const uint32_t division : {24u, 96u, 960u}) {
    const auto midi = [](uint32_t d) {
      return MidiOf(
          {TrackBytes().Tempo(0, 90).On(d / 2, 60).Off(d, 60).On(4 * d, 64).Off(
              6 * d, 64)},
          d);
    };
    for (const char* family : kFamilies) {
      EXPECT_EQ(Encode(family, midi(division)).events,
                Encode(family, midi(480)).events);
    }
  }
}

TEST(CompoundWordEvents, BarsBeginWithTheFirstNoteAndEndBeforeTheLast) {
  const Encoded found = Encode("compound_word", MidiOf({TrackBytes()
                                                            .Tempo(0, 101)
                                                            .On(1920, 60, 65)
                                                            .On(1980, 72, 9)
                                                            .Off(2100, 60)
                                                            .On(3840, 50)
                                                            .Off(4000, 50)
                                                            .Off(9000, 72)}));
  EXPECT_EQ(found.events,
            "Bar_None "
            // The lower one of two bins, the even one of two lines; at least
            // velocity 40; at most a bar.
            "Beat_0 Chord_N_N Tempo_101 "
            "Note_Pitch_60 Note_Velocity_64 Note_Duration_240 "
            "Note_Pitch_72 Note_Velocity_40 Note_Duration_1920 "
            "Bar_None");
  EXPECT_EQ(found.left_out, LeftOutMap({{"note after the last bar", 1}}));
}

TEST(CompoundWordEvents, ChordsAreThoseThatSoundInABeatOrTwo) {
  TrackBytes track;
  for (const int pitch : {48, 64, 67}) track.On(0, pitch);
  for (const int pitch : {48, 64, 67}) track.Off(960, pitch);
  for (const int pitch : {50, 62, 65, 69, 72}) track.On(960, pitch);
  for (const int pitch : {50, 62, 65, 69, 72}) track.Off(1920, pitch);
  const std::string found = Encode("compound_word", MidiOf({track})).events;
  EXPECT_THAT(found, HasSubstr("Beat_0 Chord_C_M Tempo_119 Note_Pitch_67"));
  EXPECT_THAT(found, HasSubstr("Beat_8 Chord_D_m7 Note_Pitch_72"));
}

TEST(CompoundWordEvents, ValuesThatTheVocabularyLacksBecomeTheClosest) {
  const auto vocabulary = EventVocabulary(
      {"Bar_None", "Beat_0", "Beat_4", "Note_Pitch_60", "Note_Velocity_64",
       "Note_Velocity_80", "Note_Duration_240", "Tempo_110"});
  const std::string midi = MidiOf(
      {TrackBytes().On(0, 60, 72).Off(480, 60).On(480, 60, 73).Off(720, 60)});
  const Encoded found = Encode(*vocabulary, midi);
  EXPECT_EQ(found.events,
            "Bar_None Beat_0 Tempo_110 "
            "Note_Pitch_60 Note_Velocity_64 Note_Duration_240 "
            "Beat_4 Note_Pitch_60 Note_Velocity_64 Note_Duration_240 Bar_None");
  EXPECT_EQ(found.left_out, LeftOutMap({{"Note_Duration_480", 1},
                                        {"Note_Velocity_72", 2},
                                        {"Tempo_119", 1}}));
}

TEST(StepEvents, NotesStandFromHighToLowAndRestsBetweenThem) {
  const Encoded found = Encode("musicautobot", MidiOf({TrackBytes()
                                                           .On(480, 60)
                                                           .On(480, 67)
                                                           .Off(960, 60)
                                                           .Off(960, 67)
                                                           .On(960, 64)
                                                           .Off(1000, 64)}));
  EXPECT_EQ(found.events, "xxbos xxpad xxsep d4 n67 d4 n60 d4 xxsep d4 n64 d1");
  EXPECT_EQ(found.left_out, LeftOutMap());
}

TEST(StepEvents, AnEndBelongsToTheFirstNoteThatIsOpen) {
  const Encoded found = Encode(
      "musicautobot",
      MidiOf({TrackBytes().On(0, 60).On(480, 60).Off(960, 60).Off(1920, 60)}));
  EXPECT_EQ(found.events, "xxbos xxpad n60 d8 xxsep d4 n60 d12");
}

TEST(StepEvents, TripletsAreOnTheirOwnGridBeforeTheyAreOnTheSteps) {
  const Encoded found = Encode(
      "musicautobot",
      MidiOf(
          {TrackBytes().On(310, 60).Off(460, 60).On(960, 62).Off(1440, 62)}));
  // 310 ticks are 2/3 of a beat, which is step 3; 150 are 1/3, which is one.
  EXPECT_EQ(found.events, "xxbos xxpad xxsep d3 n60 d1 xxsep d5 n62 d4");
}

TEST(StepEvents, TellsOfAllThatItLeavesOut) {
  const Encoded found =
      Encode("musicautobot", MidiOf({TrackBytes()
                                         .On(0, 20)
                                         .Off(480, 20)
                                         .On(480, 36, 64, 9)
                                         .Off(500, 36, 9)
                                         .On(960, 61)
                                         .Off(960, 61)
                                         .On(960, 60)
                                         .Off(960 + 33 * 480 * 4, 60)
                                         .On(480 * 4 * 60, 60)
                                         .Off(480 * 4 * 61, 60)
                                         .On(480 * 4 * 61, 70)}));
  EXPECT_EQ(found.events,
            "xxbos xxpad xxsep d8 n60 d128 "
            // A rest of 952 steps.
            "xxsep d160 xxsep d160 xxsep d160 xxsep d160 xxsep d160 xxsep d152 "
            "n60 d16");
  EXPECT_EQ(found.left_out, LeftOutMap({{"end of a longer note", 1},
                                        {"n20", 1},
                                        {"note of percussion", 1},
                                        {"note without a length", 1},
                                        {"note without an end", 1}}));
}

TEST(StepEvents, PartsMayPlayTheSameNoteAndAPartPlaysTheLongestOnly) {
  const TrackBytes twice =
      TrackBytes().On(0, 60).Off(240, 60).On(240, 64).Off(480, 64);
  const Encoded found = Encode(
      "musicautobot",
      MidiOf({twice, twice,
              TrackBytes().On(0, 72).On(0, 72).Off(480, 72).Off(960, 72)}));
  EXPECT_EQ(found.events,
            "xxbos xxpad n72 d8 n60 d2 n60 d2 xxsep d2 n64 d2 n64 d2");
  EXPECT_EQ(found.left_out, LeftOutMap({{"note that a longer one covers", 1}}));
}

}  // namespace
}  // namespace txl
