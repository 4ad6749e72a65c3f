// The program as a user sees it: train, evaluate, generate, inspect, random.

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_replace.h"
#include "model/train/training_state.h"
#include "tests/model/tool/program.h"

namespace txl {
namespace {

using testing::HasSubstr;

constexpr char kTrainFlags[] =
    " --layers 1 --d-model 16 --heads 2 --d-head 8 --d-inner 32 --streams 4"
    " --segment 8 --mem-len 8 --lr 0.01 --warmup 5 --held-out 0.2 --dropout 0"
    " --threads 1 --evaluate-every 20";

std::string SyntheticText() {
  std::string text;
  for (int i = 0; i < 160; ++i) text += i % 3 == 0 ? "abcde\n" : "edcba\n";
  return text;
}

// A trained model directory, made once.
class TrainedModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = FreshTestFolder("trained");
    WriteTestFile(folder_ + "/text", SyntheticText());
  }

  void SetUp() override {
    if (std::filesystem::exists(Model() + "/model.safetensors")) return;
    const ProgramResult result =
        RunTxlModel("train --text " + Text() + " --out " + Model() +
                    kTrainFlags + " --steps 60 --dtype f16");
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("step 60/60"));
    EXPECT_THAT(result.errors, HasSubstr("held-out"));
  }

  static std::string Text() { return folder_ + "/text"; }
  static std::string Model() { return folder_ + "/model"; }

  static std::string folder_;
};

std::string TrainedModelTest::folder_;

TEST_F(TrainedModelTest, MoreThreadsThanAProcessHasAreAMistake) {
  for (const std::string& command :
       {"eval " + Model() + " --text " + Text(), "generate " + Model(),
        "train --text " + Text() + " --out " + folder_ + "/threads"}) {
    const ProgramResult result = RunTxlModel(command + " --threads 99999");
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.errors, HasSubstr("--threads: 99999 is not in 1..1024"));
  }
}

TEST_F(TrainedModelTest, EvalReportsTheSameLossInEveryUnit) {
  const ProgramResult result =
      RunTxlModel("eval " + Model() + " --text " + Text() +
                  " --held-out 0.2 --threads 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto json = nlohmann::json::parse(result.output);
  const double nats = json["nats_per_token"];
  EXPECT_LT(nats, 0.9);  // the entropy of six equal characters is 1.79
  EXPECT_NEAR(json["bits_per_token"], nats / std::log(2), 1e-9);
  EXPECT_NEAR(json["perplexity"], std::exp(nats), 1e-9);
  EXPECT_EQ(json["tokens"], 191);
}

// A short text is one stream, so that its figure is that of its tokens one
// after the other.
TEST_F(TrainedModelTest, EvalSaysWhenStreamsBeginWithoutContext) {
  const std::string eval =
      "eval " + Model() + " --text " + Text() + " --threads 1 --json";
  const ProgramResult whole = RunTxlModel(eval);
  EXPECT_EQ(whole.output, RunTxlModel(eval + " --streams 1").output);
  EXPECT_THAT(whole.output, HasSubstr("\"streams\":1"));
  EXPECT_THAT(whole.errors, testing::Not(HasSubstr("note:")));
  const ProgramResult cut = RunTxlModel(eval + " --streams 3");
  EXPECT_THAT(cut.output, HasSubstr("\"streams\":3"));
  EXPECT_THAT(cut.errors, HasSubstr("3 streams that begin without context"));
}

TEST_F(TrainedModelTest, TextInAnotherCodingIsRefused) {
  const std::string text = FreshTestFolder("coding") + "/text.txt";
  const auto errors = [&](const std::string& content) {
    WriteTestFile(text, content);
    return RunTxlModel("eval " + Model() + " --text " + text).errors;
  };
  EXPECT_THAT(errors(std::string("a\0b\0", 4)), HasSubstr("UTF-16?"));
  EXPECT_THAT(errors("ab\nb\xFF"), HasSubstr("line 2, byte 2: is not UTF-8"));
}

TEST_F(TrainedModelTest, EvalCanSkipWhatTheVocabularyLacks) {
  const std::string with_more = folder_ + "/text with more";
  WriteTestFile(with_more, "?" + SyntheticText() + "?!");
  const auto eval = [](const std::string& text, const std::string& flags) {
    return RunTxlModel("eval " + Model() + " --text '" + text +
                       "' --threads 1 --json" + flags);
  };
  EXPECT_EQ(eval(with_more, "").exit_code, 1);
  const ProgramResult skipped = eval(with_more, " --unknown skip");
  EXPECT_EQ(skipped.exit_code, 0) << skipped.errors;
  EXPECT_EQ(skipped.output, eval(Text(), "").output);
  EXPECT_THAT(eval(Text(), " --unknown unk").errors, HasSubstr("--unknown"));
}

TEST_F(TrainedModelTest, EvalTakesOtherMemoryWindowAndClamp) {
  const std::string eval = "eval " + Model() + " --text " + Text() +
                           " --held-out 0.2 --threads 1 --json";
  const auto nats = [](const ProgramResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return nlohmann::json::parse(result.output)["nats_per_token"].get<double>();
  };
  const double own = nats(RunTxlModel(eval));
  // A token that sees only itself cannot know the direction of its line.
  EXPECT_GT(nats(RunTxlModel(eval + " --window 1")), own + 0.1);
  EXPECT_NE(nats(RunTxlModel(eval + " --clamp-len 2")), own);
  EXPECT_NE(nats(RunTxlModel(eval + " --mem-len 0 --segment 2")), own);
}

TEST_F(TrainedModelTest, EvalOnTheServersStepGivesTheReferencesFigures) {
  const std::string eval = "eval " + Model() + " --text " + Text() +
                           " --held-out 0.2 --threads 1 --json";
  const auto facts = [&](const std::string& flags) {
    const ProgramResult result = RunTxlModel(eval + flags);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("nats per token"));  // the bar
    return nlohmann::json::parse(result.output);
  };
  // The trainer gives the model the window that it is served with.
  const auto reference = facts(""), serving = facts(" --engine serving");
  EXPECT_EQ(serving["tokens"], reference["tokens"]);
  const double nats = reference["nats_per_token"];
  EXPECT_NEAR(serving["nats_per_token"], nats, 2e-5);
  EXPECT_NEAR(facts(" --engine serving --dtype f64")["nats_per_token"], nats,
              2e-5);
  for (const char* flag :
       {"--weights int8", "--weights bf16", "--memory f16", "--derived f16"}) {
    const double rounded =
        facts(std::string(" --engine serving ") + flag)["nats_per_token"];
    EXPECT_NE(rounded, serving["nats_per_token"]) << flag;
    EXPECT_NEAR(rounded, nats, 0.01) << flag;
  }
  // The file is f16 already.
  EXPECT_EQ(facts(" --engine serving --weights f16"), serving);
}

TEST_F(TrainedModelTest, EvalRefusesFormatsThatTheEngineDoesNotKnow) {
  const std::string eval =
      "eval " + Model() + " --text " + Text() + " --threads 1 ";
  for (const std::string flag : {"--weights", "--memory", "--derived"}) {
    for (const char* engine : {"", " --engine serving --dtype f64"}) {
      const ProgramResult result = RunTxlModel(eval + flag + " bf16" + engine);
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_THAT(result.errors, HasSubstr(flag + ": bf16"));
    }
  }
  EXPECT_EQ(RunTxlModel(eval + "--engine fast").exit_code, 2);
  EXPECT_EQ(RunTxlModel(eval + "--engine serving --memory q8").exit_code, 2);
}

TEST_F(TrainedModelTest, GenerateGivesTheSameTextForTheSameSeed) {
  const std::string generate =
      "generate " + Model() +
      " --prompt abc --threads 1 --max-tokens 30 --seed 5";
  const ProgramResult a = RunTxlModel(generate), b = RunTxlModel(generate);
  ASSERT_EQ(a.exit_code, 0) << a.errors;
  EXPECT_EQ(a.output.size(), 31u);  // and the closing line break
  EXPECT_EQ(a.output, b.output);
  EXPECT_THAT(a.errors, HasSubstr("seed 5"));
}

TEST_F(TrainedModelTest, GreedyTextFollowsTheTrainedPattern) {
  const ProgramResult result = RunTxlModel(
      "generate " + Model() +
      " --threads 1 --prompt 'a\nedc' --max-tokens 2 --temperature 0");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, "ba\n");
}

TEST_F(TrainedModelTest, GenerateWithoutPromptUsesTheStartTokens) {
  const ProgramResult result =
      RunTxlModel("generate " + Model() + " --threads 1 --max-tokens 5");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output.size(), 6u);
}

TEST_F(TrainedModelTest, GenerateNamesASamplingFlagOutOfRange) {
  const ProgramResult result =
      RunTxlModel("generate " + Model() + " --top-p 0");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("top_p"));
}

TEST_F(TrainedModelTest, InspectCountsParametersAndMemory) {
  const ProgramResult result = RunTxlModel("inspect " + Model() + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto json = nlohmann::json::parse(result.output);
  // V d + (wq wk wv wr wo) + u v + ff + three norms + head bias
  EXPECT_EQ(json["parameters"],
            6 * 16 + 5 * 256 + 2 * 16 + (2 * 16 * 32 + 32 + 16) + 3 * 32 + 6);
  // One layer, 8 + 8 - 1 rows of 16.
  EXPECT_EQ(json["memory_bytes_per_session"]["f32"], 15 * 16 * 4);
  EXPECT_EQ(json["memory_bytes_per_session"]["f16"], 15 * 16 * 2);
  EXPECT_EQ(json["serving_window"], 16);
  // Every width is below a panel of 64 rows: wq, wk and wv, wo, ff, words;
  // biases of ff and words, u, v and three norms stay float32.
  const int64_t matrices = 64 * (4 * 16 + 32 + 16);
  const int64_t floats = 3 * 64 + 2 * 16 + 3 * 2 * 64;
  const auto& weights = json["native_weight_bytes"]["projected"];
  EXPECT_EQ(weights["f32"], 4 * (matrices + floats));
  EXPECT_EQ(weights["int8"], matrices + 4 * 6 * 64 + 4 * floats);
  EXPECT_EQ(json["native_position_key_bytes"]["f16"], 2 * 64 * 8 * 2);
  // 15 rows and 64 spare ones in two tiles of 64: keys of 8, values of 16.
  EXPECT_EQ(json["native_slot_bytes"]["memory_f32"]["projected_f16"],
            128 * 16 * 4 + 128 * 2 * (8 + 16) * 2);
  EXPECT_EQ(json["vocabulary"], "characters");
  EXPECT_EQ(json["tensors"][0]["dtype"], "F16");
  const ProgramResult text = RunTxlModel("inspect " + Model());
  EXPECT_THAT(text.output, HasSubstr("--tensors lists them"));
  EXPECT_THAT(text.output, HasSubstr("projected_f16"));
}

TEST_F(TrainedModelTest, TrainResumesAndRefusesOtherSettings) {
  const std::string train = "train --text " + Text() + " --out " + Model() +
                            kTrainFlags + " --dtype f16 --resume";
  EXPECT_EQ(RunTxlModel(train + " --steps 60").exit_code, 0);
  EXPECT_EQ(RunTxlModel(train + " --steps 61").exit_code, 0);
  const ProgramResult other = RunTxlModel(train + " --steps 60 --seed 7");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.errors, HasSubstr("other settings: --seed "));
  const auto with = [&](const std::string& given, const std::string& now) {
    return RunTxlModel(absl::StrReplaceAll(train, {{given, now}}) +
                       " --steps 61");
  };
  EXPECT_THAT(with("--held-out 0.2", "--held-out 0.3").errors,
              HasSubstr("other settings: --held-out 0.2, now 0.3\n"));
  EXPECT_THAT(with("--d-inner 32", "--d-inner 24").errors,
              HasSubstr("other settings: --d-inner 32, now 24\n"));
  EXPECT_THAT(with("--lr 0.01", "--lr 5").errors,
              HasSubstr("other settings: --lr 0.01, now 5\n"));
  EXPECT_THAT(with("--dropout 0", "--attention-dropout 0.5").errors,
              HasSubstr("--attention-dropout 0, now 0.5"));
  // The same tokens are held out.
  EXPECT_EQ(with("--held-out 0.2", "--held-out 0.2000001").exit_code, 0);
}

TEST_F(TrainedModelTest, TrainNamesTheFlagThatIsOutOfRange) {
  const std::string train =
      "train --text " + Text() + " --out " + folder_ + "/none ";
  for (const auto& [flag, value] :
       {std::pair("--heads", "0"), std::pair("--d-model", "7"),
        std::pair("--lr", "-1"), std::pair("--dropout", "2"),
        std::pair("--steps", "0"), std::pair("--held-out", "3")}) {
    const ProgramResult result = RunTxlModel(train + flag + " " + value);
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.errors, HasSubstr(std::string(flag) + ": ")) << flag;
  }
}

TEST_F(TrainedModelTest, TrainReplacesAModelOnlyWhenAsked) {
  const std::string train = "train --text " + Text() + " --out " + folder_ +
                            "/twice" + kTrainFlags + " --steps 2";
  EXPECT_EQ(RunTxlModel(train).exit_code, 0);
  const ProgramResult again = RunTxlModel(train);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.errors, HasSubstr("--overwrite"));
  EXPECT_EQ(RunTxlModel(train + " --overwrite").exit_code, 0);
}

TEST_F(TrainedModelTest, AnInterruptedTrainingSaysHowToResumeAndCan) {
  const std::string train =
      "train --text " + Text() + " --out " + folder_ + "/stopped" + kTrainFlags;
  const ProgramResult stopped =
      InterruptTxlModel(train + " --steps 100000000", "step 50/");
  EXPECT_EQ(stopped.exit_code, 130) << stopped.errors;
  EXPECT_THAT(stopped.errors, HasSubstr("--resume"));
  const ProgramResult resumed =
      InterruptTxlModel(train + " --steps 100000000 --resume", "tokens/s");
  EXPECT_EQ(resumed.exit_code, 130) << resumed.errors;
  EXPECT_THAT(resumed.errors, testing::Not(HasSubstr("step 50/")));
}

constexpr char kAdaptiveSpec[] = R"({
  "vocab_size": 300, "n_layer": 2, "n_head": 2, "d_head": 8, "d_model": 16,
  "d_embed": 16, "d_inner": 32, "norm": "post", "final_norm": false,
  "ln_eps": 1e-5, "act": "relu", "ff_out_act": "none", "pos": "sin_concat",
  "pos_base": 10000, "clamp_len": -1, "window": 9, "mem_len": 8,
  "mem_init": "empty", "emb_scale": "sqrt_d", "cutoffs": [50, 150],
  "div_val": 2, "emb_proj_bin0": "present", "tie_weight": true,
  "tie_projs": [false, true, true], "head_bias": true})";

double MeanTailShare(const std::string& model, const std::string& folder) {
  TensorFile tokens;
  tokens.tensors["tokens"] = at::arange(0, 300, 7, at::kLong);
  EXPECT_TRUE(WriteTensorFile(folder + "/tokens", tokens).ok());
  const ProgramResult result = RunTxlModel(
      "logprobs " + model + " --tokens " + folder +
      "/tokens --threads 1 --feed stepwise --out " + folder + "/out");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  const at::Tensor p = ReadTensorFile(folder + "/out")->tensors["logprobs"];
  return p.exp().narrow(1, 50, 250).sum(1).mean().item<double>();
}

TEST(RandomCommandTest, MakesTheSameModelForTheSameSeed) {
  const std::string folder = FreshTestFolder("random");
  WriteTestFile(folder + "/spec.json", kAdaptiveSpec);
  const std::string random = "random --spec " + folder + "/spec.json " + folder;
  ASSERT_EQ(RunTxlModel(random + "/a --seed 3").exit_code, 0);
  ASSERT_EQ(RunTxlModel(random + "/b --seed 3").exit_code, 0);
  ASSERT_EQ(RunTxlModel(random + "/c --seed 4").exit_code, 0);
  const auto weights = [&](const std::string& name) {
    return ReadTestFile(folder + "/" + name + "/model.safetensors");
  };
  EXPECT_EQ(weights("a"), weights("b"));
  EXPECT_NE(weights("a"), weights("c"));
  EXPECT_EQ(RunTxlModel("inspect " + folder + "/a").exit_code, 0);
}

TEST(RandomCommandTest, ReplacesNoModel) {
  const std::string folder = FreshTestFolder("random_again");
  WriteTestFile(folder + "/spec.json", kAdaptiveSpec);
  std::filesystem::create_directories(folder + "/a");
  WriteTestFile(folder + "/a/notes", "not of a model");
  const std::string random =
      "random --spec " + folder + "/spec.json " + folder + "/a";
  ASSERT_EQ(RunTxlModel(random).exit_code, 0);
  const std::string before = ReadTestFile(folder + "/a/model.safetensors");
  const ProgramResult again = RunTxlModel(random + " --seed 4");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.errors, HasSubstr("/a: holds files of a model already"));
  EXPECT_EQ(ReadTestFile(folder + "/a/model.safetensors"), before);
}

TEST(LogprobsCommandTest, ReplacesNothingThatItReads) {
  const std::string folder = FreshTestFolder("logprobs_inputs");
  WriteTestFile(folder + "/spec.json", kAdaptiveSpec);
  const std::string model = folder + "/m";
  ASSERT_EQ(
      RunTxlModel("random --spec " + folder + "/spec.json " + model).exit_code,
      0);
  WriteTestFile(model + "/ngrams.bin", "before");
  WriteTestFile(folder + "/tokens", "before");
  std::filesystem::create_hard_link(folder + "/tokens", folder + "/same");
  for (const char* out : {"tokens", "same", "m/model.safetensors",
                          "m/config.json", "m/ngrams.bin"}) {
    const std::string before = ReadTestFile(folder + "/" + out);
    const ProgramResult result =
        RunTxlModel("logprobs " + model + " --tokens " + folder +
                    "/tokens --out " + folder + "/" + out);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.errors, HasSubstr("--out: would replace "));
    EXPECT_EQ(ReadTestFile(folder + "/" + out), before);
  }
}

TEST(RandomCommandTest, TailShareIsHowOftenTheSoftmaxMeetsATail) {
  const std::string folder = FreshTestFolder("tail");
  WriteTestFile(folder + "/spec.json", kAdaptiveSpec);
  const std::string random = "random --spec " + folder + "/spec.json " +
                             folder + "/m --seed 3 --tail-share ";
  ASSERT_EQ(RunTxlModel(random + "0.3").exit_code, 0);
  EXPECT_NEAR(MeanTailShare(folder + "/m", folder), 0.3, 0.02);
  std::filesystem::remove_all(folder + "/m");
  ASSERT_EQ(RunTxlModel(random + "0.05").exit_code, 0);
  EXPECT_NEAR(MeanTailShare(folder + "/m", folder), 0.05, 0.01);
  std::filesystem::remove_all(folder + "/m");
  const ProgramResult wrong = RunTxlModel(random + "1.5");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("--tail-share"));
}

TEST(RandomCommandTest, WritesTheTypeThatIsAskedFor) {
  const std::string folder = FreshTestFolder("random_types");
  WriteTestFile(folder + "/spec.json", kAdaptiveSpec);
  for (const auto& [flag, name] : std::map<std::string, std::string>{
           {"f32", "F32"}, {"f16", "F16"}, {"bf16", "BF16"}, {"f64", "F64"}}) {
    const std::string model = folder + "/" + flag;
    ASSERT_EQ(RunTxlModel("random --spec " + folder + "/spec.json " + model +
                          " --dtype " + flag)
                  .exit_code,
              0);
    const ProgramResult inspect = RunTxlModel("inspect " + model + " --json");
    ASSERT_EQ(inspect.exit_code, 0) << inspect.errors;
    const auto facts = nlohmann::json::parse(inspect.output);
    for (const auto& tensor : facts["tensors"]) {
      EXPECT_EQ(tensor["dtype"], name) << tensor["name"];
    }
  }
}

TEST(RandomCommandTest, ASpecThatContradictsItselfIsOneLine) {
  const std::string folder = FreshTestFolder("random_wrong");
  WriteTestFile(folder + "/spec.json", R"({"vocab_size": 0})");
  const ProgramResult result =
      RunTxlModel("random --spec " + folder + "/spec.json " + folder + "/m");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("spec.json"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/m/model.safetensors"));
}

TEST(UsageTest, HelpIsZeroAndStatesDefaults) {
  const ProgramResult help = RunTxlModel("train --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("--held-out"));
  EXPECT_THAT(help.output, HasSubstr("0.1"));
  EXPECT_THAT(help.output, HasSubstr("characters"));
}

TEST(UsageTest, EvalSaysHowItsEnginesDiffer) {
  const ProgramResult help = RunTxlModel("eval --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("token by token"));
  EXPECT_THAT(help.output, HasSubstr("differ slightly"));
  EXPECT_THAT(help.output, HasSubstr("--weights f32|bf16|f16|int8"));
}

TEST(UsageTest, WrongUseIsTwo) {
  EXPECT_EQ(RunTxlModel("").exit_code, 2);
  EXPECT_EQ(RunTxlModel("fly").exit_code, 2);
  EXPECT_EQ(RunTxlModel("train").exit_code, 2);
  EXPECT_EQ(RunTxlModel("inspect /no/such").exit_code, 2);
}

TEST(UsageTest, AFailureIsOneAndNamesTheFile) {
  const std::string folder = FreshTestFolder("empty");
  const ProgramResult result = RunTxlModel("inspect " + folder);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("config.json"));
  std::filesystem::create_directory(folder + "/config.json");
  const ProgramResult odd = RunTxlModel("inspect " + folder);
  EXPECT_EQ(odd.exit_code, 1);
  EXPECT_THAT(odd.errors, HasSubstr("config.json: is not a regular file"));
}

}  // namespace
}  // namespace txl
