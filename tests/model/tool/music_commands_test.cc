// txl-model midi, and train --midi, on a music model with random weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "model/music/midi_encoder.h"
#include "model/tool/midi_corpus.h"
#include "tests/model/music/music_data.h"
#include "tests/model/tool/program.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Writes the directory of a model of compound-word's events.
std::string MusicModel(const std::string& folder) {
  const std::string events = MusicFile("compound_word.txt");
  json spec = {{"n_layer", 1},  {"n_head", 2},   {"d_head", 4}, {"d_model", 8},
               {"d_inner", 16}, {"mem_len", 16}, {"window", 17}};
  spec["vocab_size"] = std::count(events.begin(), events.end(), '\n');
  WriteTestFile(folder + "/spec.json", spec.dump());
  const std::string model = folder + "/pop";
  const ProgramResult random =
      RunTxlModel("random --spec " + folder + "/spec.json " + model);
  EXPECT_EQ(random.exit_code, 0) << random.errors;
  WriteTestFile(model + "/tokenizer.json",
                R"({"kind": "events", "file": "events.txt"})");
  WriteTestFile(model + "/events.txt", events);
  WriteTestFile(model + "/kinds.json",
                R"({"kinds": {"Bar": {"tokens": [0]}}})");
  return model;
}

std::vector<int64_t> GoldenIds(const std::string& file) {
  return json::parse(MusicFile("expected.json"))[file]["compound_word"];
}

TEST(MidiCommand, PrintsIdsAndWhatTheyLeaveOut) {
  const std::string folder = FreshTestFolder("midi_command");
  const std::string model = MusicModel(folder);
  WriteTestFile(folder + "/a.mid", MusicFile("02.mid"));
  const ProgramResult result =
      RunTxlModel("midi " + model + " " + folder + "/a.mid");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json printed = json::parse(result.output);
  std::vector<int64_t> ids = GoldenIds("02.mid");
  ids.pop_back();  // a prompt goes on
  EXPECT_EQ(printed["ids"].get<std::vector<int64_t>>(), ids);
  EXPECT_TRUE(printed["left_out"].is_object());
  EXPECT_EQ(printed.size(), 2u);
}

TEST(MidiCommand, NamesTheFileAndItsFault) {
  const std::string folder = FreshTestFolder("midi_command_errors");
  const std::string model = MusicModel(folder);
  WriteTestFile(folder + "/a.mid", MusicFile("02.mid").substr(0, 40));
  const ProgramResult result =
      RunTxlModel("midi " + model + " " + folder + "/a.mid");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.errors, "txl-model: " + folder +
                               "/a.mid: the MIDI file is cut off at byte 40\n");
  std::filesystem::remove(model + "/tokenizer.json");
  EXPECT_THAT(RunTxlModel("midi " + model + " " + folder + "/a.mid").errors,
              HasSubstr("/pop: has no tokenizer.json"));
}

class MidiFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshTestFolder("midi_folder");
    vocabulary_ = FamilyVocabulary("compound_word");
  }

  absl::StatusOr<std::vector<int64_t>> Read(bool skip = false) {
    log_.str("");
    return IdsOfMidiFolder({folder_, skip}, *vocabulary_, log_);
  }

  std::string folder_;
  std::unique_ptr<Vocabulary> vocabulary_;
  std::ostringstream log_;
};

TEST_F(MidiFolderTest, FilesBelowItFollowEachOtherByTheirPathsToTheirEnds) {
  std::filesystem::create_directories(folder_ + "/b/c");
  WriteTestFile(folder_ + "/b/c/1.MIDI", MusicFile("04.mid"));
  WriteTestFile(folder_ + "/a.mid", MusicFile("02.mid"));
  WriteTestFile(folder_ + "/notes.txt", "no music");
  const auto ids = Read();
  ASSERT_TRUE(ids.ok()) << ids.status();
  std::vector<int64_t> expected = GoldenIds("02.mid");
  for (const int64_t id : GoldenIds("04.mid")) expected.push_back(id);
  EXPECT_EQ(*ids, expected);
  EXPECT_THAT(log_.str(),
              HasSubstr("2 MIDI files, " + std::to_string(expected.size()) +
                        " tokens"));
}

TEST_F(MidiFolderTest, WhatIsLeftOutIsToldTheMostFrequentFirst) {
  WriteTestFile(folder_ + "/a.mid", MidiOf({TrackBytes()
                                                .On(0, 60)
                                                .On(0, 72, 64, 1)
                                                .On(0, 76, 64, 1)
                                                .Off(480, 60)
                                                .Off(490, 72, 1)
                                                .Off(490, 76, 1)
                                                .On(960, 60)}));
  ASSERT_TRUE(Read().ok());
  EXPECT_THAT(
      log_.str(),
      HasSubstr("; left out: note of another instrument than the first (2), "
                "note after the last bar (1), note without an end (1)\n"));
}

TEST_F(MidiFolderTest, AFileThatCannotBeReadIsNamedAndRefusedUnlessSkipped) {
  WriteTestFile(folder_ + "/a.mid", MusicFile("02.mid"));
  WriteTestFile(folder_ + "/b.mid", "text");
  EXPECT_EQ(Read().status(),
            absl::InvalidArgumentError(folder_ +
                                       ": 1 of 2 MIDI files cannot be read; "
                                       "--skip-unreadable leaves them out"));
  EXPECT_THAT(log_.str(), HasSubstr("/b.mid: the file is not a MIDI file"));
  const auto ids = Read(true);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, GoldenIds("02.mid"));
  EXPECT_THAT(log_.str(), HasSubstr("1 of 2 MIDI files cannot be read"));
}

TEST_F(MidiFolderTest, AFolderWithoutMusicIsNamed) {
  EXPECT_EQ(Read().status(),
            absl::InvalidArgumentError(folder_ +
                                       ": holds no MIDI file (*.mid, *.midi)"));
  WriteTestFile(folder_ + "/b.mid", "text");
  EXPECT_EQ(Read(true).status(),
            absl::InvalidArgumentError(folder_ +
                                       ": none of its MIDI files can be read"));
}

TEST(TrainMidi, TrainsOnTheFilesOfAFolder) {
  const std::string folder = FreshTestFolder("train_midi");
  const std::string model = MusicModel(folder);
  std::filesystem::create_directories(folder + "/songs");
  size_t tokens = 0;
  for (const char* file : {"12.mid", "14.mid", "16.mid"}) {
    WriteTestFile(folder + "/songs/" + file, MusicFile(file));
    tokens += GoldenIds(file).size();
  }
  const std::string train =
      "train --midi " + folder + "/songs --out " + folder +
      "/out --streams 2 --segment 8 --steps 4 --threads 1 --held-out 0.1";
  EXPECT_THAT(RunTxlModel(train).errors,
              HasSubstr("--midi and --unknown need"));
  EXPECT_THAT(RunTxlModel(train + " --from " + model + " --ids " + model +
                          "/events.txt")
                  .errors,
              HasSubstr("only one of --text, --ids and --midi can be given"));
  const ProgramResult result = RunTxlModel(train + " --from " + model);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr("3 MIDI files, " + std::to_string(tokens) + " tokens"));
  for (const char* file : {"/events.txt", "/kinds.json"}) {
    EXPECT_EQ(ReadTestFile(folder + "/out" + file), ReadTestFile(model + file));
  }
}

TEST(TrainMidi, AModelOfWordsTakesNoMusic) {
  const std::string folder = FreshTestFolder("train_midi_words");
  WriteTestFile(folder + "/a.mid", MusicFile("02.mid"));
  const ProgramResult result = RunTxlModel(
      "train --midi " + folder + " --out " + folder + "/out --from " +
      std::string(std::getenv("TXL_TEST_DATA")) + "/../models/shakespeare");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("MIDI needs a model of music"));
}

}  // namespace
}  // namespace txl
