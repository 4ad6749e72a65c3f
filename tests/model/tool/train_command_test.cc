// Training on from a model, and dynamic evaluation, as a user sees them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "model/train/run_folder.h"
#include "tests/model/golden_paths.h"
#include "tests/model/tool/program.h"

namespace txl {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kSmallest[] = " --streams 4 --segment 8 --threads 1 --dropout 0";
const std::string kSmall = std::string(kSmallest) + " --held-out 0.2";

std::string Pattern(const std::string& a, const std::string& b) {
  std::string text;
  for (int i = 0; i < 160; ++i) text += i % 3 == 0 ? a : b;
  return text;
}

// A trained model of the letters a to e, made once, and texts.
class TrainFromTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = FreshTestFolder("train_from");
    WriteTestFile(Path("first"), Pattern("abcde\n", "edcba\n"));
    WriteTestFile(Path("second"), Pattern("aacce\n", "bbdda\n"));
    WriteTestFile(Path("more"), Pattern("aacce\n", "bbXda\n") + "Y");
    WriteTestFile(Path("empty"), "");
    WriteTestFile(Path("short"), "abc");
  }

  void SetUp() override {
    if (std::filesystem::exists(Path("model"))) return;
    const ProgramResult made = RunTxlModel(
        "train --text " + Path("first") + " --out " + Path("model") + kSmall +
        " --layers 1 --d-model 16 --heads 2 --d-head 8 --d-inner 32"
        " --mem-len 8 --lr 0.01 --warmup 5 --steps 60");
    ASSERT_EQ(made.exit_code, 0) << made.errors;
  }

  static std::string Path(const std::string& name) {
    return folder_ + "/" + name;
  }
  static std::string From(const std::string& source, const std::string& out) {
    return "train --from " + Path("model") + " " + source + " --out " +
           Path(out) + kSmall + " --lr 0.01 --warmup 5";
  }
  static std::string Text(const std::string& name) {
    return "--text " + Path(name);
  }
  static double Nats(const std::string& model, const std::string& flags) {
    const ProgramResult result =
        RunTxlModel("eval " + Path(model) + " --json --threads 1 " + flags);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return nlohmann::json::parse(result.output).at("nats_per_token");
  }

  static std::string folder_;
};

std::string TrainFromTest::folder_;

TEST_F(TrainFromTest, TheModelLearnsAnotherTextAndTheOldOneStaysAsItIs) {
  const std::string before = ReadTestFile(Path("model/model.safetensors"));
  const ProgramResult result = RunTxlModel(From(Text("second"), "learnt") +
                                           " --steps 60 --evaluate-every 20");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("step 0/60  held-out"));
  EXPECT_THAT(result.errors, HasSubstr("tokens/s  eta 0:00"));
  const std::string held_out = Text("second") + " --held-out 0.2";
  EXPECT_LT(Nats("learnt", held_out), Nats("model", held_out) - 0.1);
  EXPECT_EQ(ReadTestFile(Path("model/model.safetensors")), before);
  for (const char* file : {"config.json", "vocab.json", "generation.json"}) {
    EXPECT_EQ(ReadTestFile(Path("learnt/") + file),
              ReadTestFile(Path("model/") + file));
  }
}

TEST_F(TrainFromTest, TheRunLeavesALogAndAPicture) {
  ASSERT_EQ(
      RunTxlModel(From(Text("second"), "logged") + " --steps 30 --log-every 10")
          .exit_code,
      0);
  std::istringstream log(ReadTestFile(Path("logged/log.jsonl")));
  std::vector<int64_t> steps;
  for (std::string line; std::getline(log, line);) {
    steps.push_back(nlohmann::json::parse(line).at("step"));
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 10, 20, 30}));
  EXPECT_THAT(ReadTestFile(Path("logged/losses.svg")), HasSubstr("</svg>"));
}

TEST_F(TrainFromTest, IdsDoInsteadOfText) {
  std::string ids;
  for (int i = 0; i < 600; ++i) ids += std::to_string(i * i % 6) + " ";
  WriteTestFile(Path("ids"), ids);
  EXPECT_EQ(RunTxlModel(From("--ids " + Path("ids"), "by_ids") + " --steps 3")
                .exit_code,
            0);
  WriteTestFile(Path("bad_ids"), "1 2 6");
  EXPECT_THAT(RunTxlModel(From("--ids " + Path("bad_ids"), "none")).errors,
              HasSubstr("bad_ids: word 3, \"6\", is not an id from 0 to 5"));
  WriteTestFile(Path("utf16_ids"), std::string("\xFF\xFE\x31\0", 4));
  EXPECT_THAT(RunTxlModel(From("--ids " + Path("utf16_ids"), "none")).errors,
              HasSubstr("utf16_ids: is not UTF-8 (UTF-16?)"));
}

TEST_F(TrainFromTest, IdsMayBeginWithAByteOrderMarkLikeText) {
  std::string ids = "\xEF\xBB\xBF";
  for (int i = 0; i < 600; ++i) ids += std::to_string(i * i % 6) + "\r\n";
  WriteTestFile(Path("marked_ids"), ids);
  const ProgramResult result = RunTxlModel(
      From("--ids " + Path("marked_ids"), "by_marked_ids") + " --steps 1");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("480 training and 120 held-out"));
}

TEST_F(TrainFromTest, AHeldOutShareThatLeavesNothingIsNamed) {
  for (const std::string& source :
       {"train --from " + Path("model"), std::string("train")}) {
    const std::string train =
        source + kSmallest + " " + Text("short") + " --out " + Path("none");
    const ProgramResult all = RunTxlModel(train + " --held-out 1");
    EXPECT_EQ(all.exit_code, 2);
    EXPECT_THAT(all.errors,
                HasSubstr("--held-out: 1 leaves nothing to train on; must be "
                          "below 1"));
    EXPECT_THAT(RunTxlModel(train + " --held-out 0.9").errors,
                HasSubstr("--held-out: 0.9 of 3 tokens leaves nothing"));
    EXPECT_THAT(RunTxlModel(source + kSmallest + " " + Text("second") +
                            " --out " + Path("none") + " --held-out 0.99")
                    .errors,
                HasSubstr("--held-out: 0.99 of 960 tokens leaves 10, too few "
                          "for --streams and --segment"));
    EXPECT_THAT(RunTxlModel(train + " --held-out 1.1").errors,
                HasSubstr("--held-out: 1.1 is not in 0..1"));
    EXPECT_THAT(RunTxlModel(train + " --held-out -0.1").errors,
                HasSubstr("--held-out: -0.1 is not in 0..1"));
  }
}

TEST_F(TrainFromTest, ASeedThatNoIntegerHoldsIsRefused) {
  const ProgramResult result = RunTxlModel(From(Text("second"), "none") +
                                           " --seed 18446744073709551616");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("--seed: 18446744073709551616 is not in "
                                       "0..18446744073709551615"));
}

TEST_F(TrainFromTest, ModelsOfEveryFamilyCanBeTrainedOn) {
  std::string ids;
  for (int i = 0; i < 600; ++i) ids += std::to_string(i * i % 10) + " ";
  WriteTestFile(Path("golden_ids"), ids);
  for (const char* name : kGoldenCases) {
    const ProgramResult result = RunTxlModel(
        "train --from " + GoldenDirectory(name) + " --ids " +
        Path("golden_ids") + " --steps 2 --out " + Path(name) + kSmall);
    EXPECT_EQ(result.exit_code, 0) << name << ": " << result.errors;
    EXPECT_THAT(result.errors, Not(HasSubstr("nan"))) << name;
    EXPECT_EQ(RunTxlModel("inspect " + Path(name)).exit_code, 0) << name;
  }
}

TEST_F(TrainFromTest, TextWithoutSymbolsIsRefusedWithCountsOrMapped) {
  const ProgramResult refused = RunTxlModel(From(Text("more"), "mapped"));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("symbol: 107 (\"X\" 106x, \"Y\" 1x)"));
  EXPECT_FALSE(std::filesystem::exists(Path("mapped")));
  EXPECT_THAT(RunTxlModel(From(Text("more"), "mapped") + " --unknown Z").errors,
              HasSubstr("--unknown: \"Z\" is not one symbol"));
  const ProgramResult mapped =
      RunTxlModel(From(Text("more"), "mapped") + " --unknown a --steps 2");
  EXPECT_EQ(mapped.exit_code, 0) << mapped.errors;
}

TEST_F(TrainFromTest, WhatCannotBeTrainedOnIsRefusedBeforeAnythingIsWritten) {
  const std::string huge =
      From(Text("second"), "none") + " --mem-len 1000000000000";
  for (const auto& [command, message] :
       std::vector<std::pair<std::string, std::string>>{
           {From(Text("empty"), "none"), "empty: holds nothing to train on"},
           {From("--ids " + Path("empty"), "none"), "holds nothing"},
           {From(Text("short"), "none"), "too short for 4 streams"},
           {From("", "none"), "one of --text, --ids and --midi is needed"},
           {From(Text("second") + " --ids " + Path("empty"), "none"),
            "only one of --text, --ids and --midi can be given"},
           {From(Text("second"), "none") + " --resume", "none"},
           {From(Text("second"), "model") + " --overwrite", "--from"},
           {huge, "this machine has"},
           {"train --text " + Path("second") + " --unknown a --out " +
                Path("none"),
            "need --from"},
           {"train --text " + Path("empty") + " --out " + Path("none"),
            "empty: is empty"},
           {"train --text " + Path("short") + " --out " + Path("none"),
            "too short"},
           {"train --from " + GoldenDirectory("kimi-char") + " --text " +
                Path("second") + " --out " + Path("none"),
            "needs --ids"}}) {
    const ProgramResult result = RunTxlModel(command);
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_THAT(result.errors, HasSubstr(message)) << command;
    EXPECT_FALSE(std::filesystem::exists(Path("none"))) << command;
  }
}

TEST_F(TrainFromTest, FlagsWithoutEffectAreRefusedWithTheOther) {
  const std::string text = From(Text("second"), "none");
  for (const auto& [command, flag, other] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {From("--ids " + Path("second"), "none") + " --unknown skip",
            "--unknown", "--ids"},
           {From("--midi " + folder_, "none") + " --unknown skip", "--unknown",
            "--midi"},
           {text + " --skip-unreadable", "--skip-unreadable", "--midi"},
           {text + " --resume --overwrite", "--overwrite", "--resume"}}) {
    const ProgramResult result = RunTxlModel(command);
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.errors,
                testing::AllOf(HasSubstr(flag), HasSubstr(other)))
        << command;
  }
}

TEST_F(TrainFromTest, FlagsOfANewModelAreRefused) {
  const ProgramResult result =
      RunTxlModel(From(Text("second"), "none") + " --layers 3");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors,
              testing::AllOf(HasSubstr("--layers"), HasSubstr("--from")));
}

TEST_F(TrainFromTest, AnyFolderWithFilesIsReplacedOnlyWhenAsked) {
  std::filesystem::create_directories(Path("mine"));
  WriteTestFile(Path("mine/notes"), "x");
  const std::string train = From(Text("second"), "mine") + " --steps 2";
  const ProgramResult refused = RunTxlModel(train);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("mine exists"));
  EXPECT_FALSE(std::filesystem::exists(Path("mine/config.json")));
  EXPECT_EQ(RunTxlModel(train + " --overwrite").exit_code, 0);
  EXPECT_EQ(ReadTestFile(Path("mine/notes")), "x");
}

TEST_F(TrainFromTest, ATextThatIsAFileOfTheFolderIsNotReplaced) {
  std::filesystem::create_directories(Path("read"));
  WriteTestFile(Path("read/log.jsonl"), Pattern("abcde\n", "edcba\n"));
  const ProgramResult result =
      RunTxlModel(From(Text("read/log.jsonl"), "read") + " --overwrite");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("--out: would replace "));
  EXPECT_EQ(ReadTestFile(Path("read/log.jsonl")),
            Pattern("abcde\n", "edcba\n"));
}

TEST_F(TrainFromTest, NothingOfTheModelBeforeStandsBesideTheNext) {
  const auto names = [](const std::string& folder) {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      found.insert(entry.path().filename());
    }
    return found;
  };
  const std::string out = Path("replaced");
  std::filesystem::create_directories(out + "/kept");
  for (const char* file :
       {"config.json", "generation.json", "kinds.json", "my_words.txt",
        "ngrams.bin", "model.safetensors", "checkpoint.safetensors.tmp",
        "losses.svg", "notes"}) {
    WriteTestFile(out + "/" + file, "{}");
  }
  WriteTestFile(out + "/tokenizer.json",
                R"({"kind": "events", "file": "my_words.txt"})");
  const std::set<std::string> before = names(out);
  EXPECT_EQ(
      RunTxlModel(From(Text("short"), "replaced") + " --overwrite").exit_code,
      1);
  EXPECT_EQ(names(out), before);

  ASSERT_EQ(RunTxlModel("train --vocabulary bytes --layers 1 --d-model 8 "
                        "--steps 1 --overwrite " +
                        Text("second") + " --out " + out + kSmall)
                .exit_code,
            0);
  std::set<std::string> run = {"config.json",
                               "generation.json",
                               "tokenizer.json",
                               "model.safetensors",
                               "checkpoint.safetensors",
                               "log.jsonl",
                               "losses.svg",
                               "kept",
                               "notes"};
  EXPECT_EQ(names(out), run);
  EXPECT_GT(Nats("replaced", Text("second")), 0);

  WriteTestFile(Path("ten_ids"), [] {
    std::string ids;
    for (int i = 0; i < 600; ++i) ids += std::to_string(i * i % 10) + " ";
    return ids;
  }());
  ASSERT_EQ(RunTxlModel("train --from " + GoldenDirectory("kimi-char") +
                        " --ids " + Path("ten_ids") +
                        " --steps 1 --overwrite --out " + out + kSmall)
                .exit_code,
            0);
  for (const char* file : {"generation.json", "tokenizer.json"})
    run.erase(file);
  EXPECT_EQ(names(out), run);
}

TEST_F(TrainFromTest, OneRunAtATimeWritesAFolder) {
  const std::string train = From(Text("second"), "shared") + " --steps 2";
  ASSERT_EQ(RunTxlModel(train).exit_code, 0);
  const std::string log = ReadTestFile(Path("shared/log.jsonl"));
  // The other run may not have got to its first checkpoint.
  std::filesystem::remove(Path("shared/checkpoint.safetensors"));
  auto other = RunLock::Take(Path("shared"));
  ASSERT_TRUE(other.ok()) << other.status();
  for (const char* way : {"", " --resume", " --overwrite"}) {
    const ProgramResult second = RunTxlModel(train + way);
    EXPECT_EQ(second.exit_code, 1) << way;
    EXPECT_THAT(second.errors,
                HasSubstr("--out: " + Path("shared") +
                          ": another training run is writing there"));
    EXPECT_EQ(ReadTestFile(Path("shared/log.jsonl")), log) << way;
  }
  other->reset();
  EXPECT_EQ(RunTxlModel(train + " --overwrite").exit_code, 0);
}

TEST_F(TrainFromTest, TheAdviceFitsWhatLiesInTheFolder) {
  const auto said = [](const std::string& folder, const std::string& flags) {
    const ProgramResult result =
        RunTxlModel(From(Text("second"), folder) + " --steps 2" + flags);
    EXPECT_EQ(result.exit_code, 1) << folder;
    return result.errors;
  };
  // As a run leaves it that was killed before its first checkpoint.
  std::filesystem::create_directories(Path("killed"));
  WriteTestFile(Path("killed/config.json"), "{}");
  EXPECT_THAT(said("killed", ""),
              testing::AllOf(HasSubstr("killed exists without a checkpoint"),
                             HasSubstr("nothing to resume; --overwrite begins "
                                       "again")));
  EXPECT_THAT(said("killed", " --resume"),
              testing::AllOf(HasSubstr("--resume: " + Path("killed")),
                             HasSubstr("nothing to resume; --overwrite instead "
                                       "begins again")));

  std::filesystem::create_directories(Path("foreign"));
  WriteTestFile(Path("foreign/notes"), "x");
  EXPECT_THAT(said("foreign", ""),
              testing::AllOf(HasSubstr("not the folder of a training run"),
                             Not(HasSubstr("--resume"))));
  EXPECT_THAT(said("foreign", " --resume"),
              HasSubstr("is not the folder of a training run"));

  EXPECT_THAT(said("absent", " --resume"),
              HasSubstr("absent holds no run; without --resume one begins"));
  EXPECT_FALSE(std::filesystem::exists(Path("absent")));

  WriteTestFile(Path("killed/checkpoint.safetensors"), "x");
  EXPECT_THAT(said("killed", ""),
              HasSubstr("--resume continues its run, --overwrite replaces"));
}

TEST_F(TrainFromTest, AnInterruptedRunLeavesAModelThatLoadsAndResumes) {
  const std::string train = From(Text("second"), "stopped") +
                            " --steps 100000000 --evaluate-every 90000000";
  const ProgramResult stopped = InterruptTxlModel(train, "step 50/");
  EXPECT_EQ(stopped.exit_code, 130) << stopped.errors;
  EXPECT_GT(Nats("stopped", Text("second")), 0);
  const ProgramResult resumed =
      InterruptTxlModel(train + " --resume", "tokens/s");
  EXPECT_EQ(resumed.exit_code, 130) << resumed.errors;
  EXPECT_THAT(resumed.errors, Not(HasSubstr("step 50/")));
  std::istringstream log(ReadTestFile(Path("stopped/log.jsonl")));
  std::set<int64_t> steps;
  for (std::string line; std::getline(log, line);) {
    const int64_t step = nlohmann::json::parse(line).at("step");
    EXPECT_TRUE(steps.insert(step).second) << line;
  }
}

TEST_F(TrainFromTest, DynamicEvaluationPrintsBothLosses) {
  const std::string eval = "eval " + Path("model") + " --text " +
                           Path("second") + " --streams 1 --threads 1";
  const ProgramResult sgd = RunTxlModel(eval + " --dynamic sgd --lr 0.1");
  ASSERT_EQ(sgd.exit_code, 0) << sgd.errors;
  EXPECT_THAT(sgd.output, testing::ContainsRegex(
                              "static:  .* nats per token.*perplexity.*\n"
                              "dynamic: .* nats per token.*perplexity"));
  const ProgramResult rms = RunTxlModel(
      eval + " --json --dynamic rms --lr 0.001 --statistics " + Path("first"));
  ASSERT_EQ(rms.exit_code, 0) << rms.errors;
  const auto json = nlohmann::json::parse(rms.output);
  EXPECT_NEAR(json.at("nats_per_token"),
              Nats("model", Text("second") + " --streams 1"), 1e-9);
  EXPECT_LT(json.at("dynamic").at("nats_per_token"), json.at("nats_per_token"));
}

TEST_F(TrainFromTest, GradientsAreGatheredFromTheTextWhereNoOtherIsNamed) {
  const std::string eval = "eval " + Path("model") + " --text " +
                           Path("second") +
                           " --streams 1 --threads 1 --json --dynamic rms";
  const ProgramResult itself = RunTxlModel(eval);
  ASSERT_EQ(itself.exit_code, 0) << itself.errors;
  EXPECT_THAT(itself.errors, HasSubstr("the evaluated text itself"));
  const ProgramResult named =
      RunTxlModel(eval + " --statistics " + Path("second"));
  EXPECT_EQ(itself.output, named.output);
  EXPECT_THAT(named.errors, Not(HasSubstr("itself")));
}

TEST_F(TrainFromTest, EvaluationTakesTheSymbolForWhatHasNoneToo) {
  const std::string eval =
      "eval " + Path("model") + " --threads 1 --text " + Path("more");
  EXPECT_THAT(RunTxlModel(eval).errors, HasSubstr("symbol: 107"));
  EXPECT_EQ(RunTxlModel(eval + " --unknown a").exit_code, 0);
}

TEST_F(TrainFromTest, DynamicEvaluationWithALearningRateOfNothingIsStatic) {
  const ProgramResult result =
      RunTxlModel("eval " + Path("model") + " --text " + Path("second") +
                  " --json --threads 1 --dynamic sgd --lr 1e-300");
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json.at("dynamic").at("nats_per_token"), json.at("nats_per_token"));
}

TEST_F(TrainFromTest, DynamicEvaluationNamesTheFlagThatIsWrong) {
  const std::string eval =
      "eval " + Path("model") + " --text " + Path("second");
  for (const std::string& flag :
       {"--statistics " + Path("first"), std::string("--decay 1"),
        std::string("--epsilon 1"), std::string("--lr 1")}) {
    const ProgramResult alone = RunTxlModel(eval + " " + flag);
    EXPECT_EQ(alone.exit_code, 2) << flag;
    EXPECT_THAT(alone.errors, HasSubstr("requires --dynamic")) << flag;
    if (flag == "--lr 1") continue;
    EXPECT_THAT(RunTxlModel(eval + " --dynamic sgd " + flag).errors,
                HasSubstr(": only --dynamic rms takes it"))
        << flag;
  }
  EXPECT_THAT(RunTxlModel(eval + " --dynamic sgd --engine serving").errors,
              HasSubstr("--dynamic"));
  EXPECT_THAT(RunTxlModel(eval + " --dynamic adam").errors,
              HasSubstr("--dynamic"));
}

TEST_F(TrainFromTest, AResultThatIsNotFiniteIsAnError) {
  const std::string eval =
      "eval " + Path("model") + " --threads 1 --text " + Path("second");
  for (const char* output : {"", " --json"}) {
    for (const std::string steps : {"sgd", "rms"}) {
      const ProgramResult result =
          RunTxlModel(eval + output + " --lr 1e30 --dynamic " + steps);
      EXPECT_EQ(result.exit_code, 1) << steps;
      EXPECT_EQ(result.output, "") << steps;
      EXPECT_THAT(result.errors,
                  HasSubstr("--lr: the perplexity is not finite after steps of "
                            "1e+30"));
    }
  }
}

// Its own pass fails, so what is wrong with other files is said before it.
TEST_F(TrainFromTest, StatisticsAreReadBeforeTheModelIsEvaluated) {
  const std::string broken = Path("broken");
  ASSERT_EQ(RunTxlModel("random --stddev 1e30 --spec " + Path("model") +
                        "/config.json " + broken)
                .exit_code,
            0);
  std::filesystem::copy(Path("model"), broken,
                        std::filesystem::copy_options::recursive |
                            std::filesystem::copy_options::skip_existing);
  const std::string eval = "eval " + broken + " --threads 1 --dynamic rms " +
                           Text("second") + " --statistics ";
  EXPECT_THAT(RunTxlModel(eval + Path("first")).errors,
              HasSubstr("broken: its perplexity on the text is not finite"));
  WriteTestFile(Path("utf16"), std::string("\xFF\xFE\x61\0", 4));
  WriteTestFile(Path("crlf"), Pattern("abcde\r\n", "edcba\r\n"));
  EXPECT_THAT(RunTxlModel(eval + Path("empty")).errors,
              HasSubstr("empty: fewer than two tokens"));
  EXPECT_THAT(RunTxlModel(eval + Path("utf16")).errors,
              HasSubstr("utf16: is not UTF-8 (UTF-16?)"));
  EXPECT_THAT(RunTxlModel(eval + Path("crlf")).errors,
              HasSubstr("symbol: 160 (\"\\r\" 160x)"));
  EXPECT_THAT(RunTxlModel(eval + Path("crlf") + " --unknown skip").errors,
              HasSubstr("not finite"));
}

}  // namespace
}  // namespace txl
