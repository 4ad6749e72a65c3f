// txl-model convert and inspect on checkpoints of other code bases, as a user
// sees them.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "model/train/training_state.h"
#include "tests/model/golden_paths.h"
#include "tests/model/tool/program.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Native(const std::string& golden_case, const std::string& file) {
  return GoldenDirectory(golden_case) + "/native/" + file;
}

std::string Spec(const std::string& golden_case) {
  return " --spec " + GoldenDirectory(golden_case) + "/config.json";
}

struct NativeCase {
  const char* golden_case;
  const char* file;
};

void PrintTo(const NativeCase& value, std::ostream* out) {
  *out << value.golden_case << "/" << value.file;
}

class ConvertedModelTest : public testing::TestWithParam<NativeCase> {};

TEST_P(ConvertedModelTest, GivesTheOriginalCodesLogProbabilities) {
  const std::string name = GetParam().golden_case;
  const std::string folder = FreshTestFolder("convert_" + name);
  const ProgramResult convert =
      RunTxlModel("convert " + Native(name, GetParam().file) + " " + folder +
                  "/model" + Spec(name));
  ASSERT_EQ(convert.exit_code, 0) << convert.errors;
  const std::string expected = GoldenDirectory(name) + "/expected.safetensors";
  const ProgramResult run =
      RunTxlModel("logprobs " + folder + "/model --tokens " + expected +
                  " --threads 1 --dtype f64 --out " + folder + "/out");
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const at::Tensor difference =
      ReadTensorFile(folder + "/out")->tensors.at("logprobs") -
      ReadTensorFile(expected)->tensors.at("logprobs_segmented");
  EXPECT_LE(difference.abs().max().item<double>(), 1e-9);
}

// One file of each family; tests/model/convert compares the weights of all.
INSTANTIATE_TEST_SUITE_P(
    Files, ConvertedModelTest,
    testing::Values(NativeCase{"kimi-adaptive-div1", "model.pt"},
                    NativeCase{"kimi-shaw-clamp", "model.pt"},
                    NativeCase{"nvidia-2019", "checkpoint_best.pt"},
                    NativeCase{"nvidia-adaptive", "checkpoint_best.pt"},
                    NativeCase{"hf-adaptive", "pytorch_model.bin"},
                    NativeCase{"hf-prelnorm-tied-r", "model.safetensors"},
                    NativeCase{"ptb-blog", "state_dict.pt"},
                    NativeCase{"cpw", "ep_170.pth.tar"},
                    NativeCase{"musicautobot", "music.pth"}),
    [](const auto& param) { return GoldenParamName(param.param.golden_case); });

TEST(ConvertCommandTest, AModelOfMusicGetsTheKindsOfItsEvents) {
  const std::string folder = FreshTestFolder("convert_kinds");
  const ProgramResult result =
      RunTxlModel("convert " + Native("cpw", "ep_170.pth.tar") + " " + folder +
                  "/model" + Spec("cpw"));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json kinds =
      json::parse(ReadTestFile(folder + "/model/kinds.json")).at("kinds");
  EXPECT_EQ(kinds.at("Note_Pitch").at("next"), json({"Note_Velocity"}));
  const ProgramResult run =
      RunTxlModel("generate " + folder +
                  "/model --max-tokens 60 --seed 5 --threads 1 --follow-kinds");
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  std::istringstream events(run.output);
  std::string before, event;
  int velocities = 0;
  while (events >> event) {
    const bool is_velocity = event.rfind("Note_Velocity_", 0) == 0;
    EXPECT_EQ(is_velocity, before.rfind("Note_Pitch_", 0) == 0)
        << event << " behind " << before;
    velocities += is_velocity ? 1 : 0;
    before = event;
  }
  EXPECT_GT(velocities, 0);
}

TEST(ConvertCommandTest, SaysWhatItFoundAndWhoSaidIt) {
  const std::string folder = FreshTestFolder("convert_summary");
  const ProgramResult result =
      RunTxlModel("convert " + Native("kimi-samelength-clamp", "model.pt") +
                  " " + folder + "/model");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("kimiyoung"), HasSubstr("torch zip"),
                    HasSubstr("family default"), HasSubstr("training"),
                    HasSubstr("token ids only"), HasSubstr(folder)));
  EXPECT_THAT(result.output, testing::ContainsRegex("mem_len +12 +checkpoint"));
  EXPECT_THAT(result.output, testing::ContainsRegex("n_layer +3 +weights"));
}

TEST(ConvertCommandTest, WhatItWroteIsAModelDirectory) {
  const std::string folder = FreshTestFolder("convert_directory");
  ASSERT_EQ(RunTxlModel("convert " + Native("kimi-char", "model.pt") + " " +
                        folder + "/model")
                .exit_code,
            0);
  const ProgramResult inspect =
      RunTxlModel("inspect " + folder + "/model --json");
  ASSERT_EQ(inspect.exit_code, 0) << inspect.errors;
  const json facts = json::parse(inspect.output);
  EXPECT_EQ(facts["kind"], "model directory");
  EXPECT_EQ(facts["config"]["vocab_size"], 61);
  // The checkpoint told already what a server will take.
  const json source = json::parse(
      RunTxlModel("inspect " + Native("kimi-char", "model.pt") + " --json")
          .output);
  EXPECT_EQ(source["parameters"], facts["parameters"]);
  for (const char* key :
       {"native_form", "native_weight_bytes", "native_position_key_bytes",
        "native_slot_bytes", "memory_bytes_per_session"}) {
    ASSERT_TRUE(facts[key].is_object()) << key;
    EXPECT_EQ(source[key], facts[key]) << key;
  }
}

TEST(ConvertCommandTest, NeverTouchesADirectoryThatIsThere) {
  const std::string folder = FreshTestFolder("convert_exists");
  WriteTestFile(folder + "/precious", "text");
  const ProgramResult result =
      RunTxlModel("convert " + Native("kimi-char", "model.pt") + " " + folder);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr(folder));
  EXPECT_EQ(ReadTestFile(folder + "/precious"), "text");
}

TEST(ConvertCommandTest, AWrongFormatSpecOrFileIsOneLine) {
  const std::string folder = FreshTestFolder("convert_wrong");
  WriteTestFile(folder + "/broken.pt", "no checkpoint at all");
  WriteTestFile(folder + "/spec.json", R"({"n_layer": 99})");
  const std::string good = Native("kimi-char", "model.pt");
  for (const std::string& arguments :
       {folder + "/broken.pt", folder + "/missing.pt",
        good + " --format nvidia", good + " --format nothing",
        good + " --spec " + folder + "/spec.json"}) {
    const ProgramResult result =
        RunTxlModel("convert " + arguments + " " + folder + "/model");
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1)
        << result.errors;
    EXPECT_FALSE(std::filesystem::exists(folder + "/model")) << arguments;
  }
}

TEST(InspectCheckpointTest, StatesTheSameFactsAsText) {
  const std::string source = Native("kimi-samelength-clamp", "model.pt");
  const ProgramResult result = RunTxlModel("inspect " + source + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json facts = json::parse(result.output);
  EXPECT_EQ(facts["kind"], "checkpoint");
  EXPECT_EQ(facts["family"], "kimiyoung");
  EXPECT_EQ(facts["container"], "torch zip");
  EXPECT_EQ(facts["config"]["mem_len"], 12);
  EXPECT_EQ(facts["origins"]["mem_len"], "checkpoint");
  EXPECT_EQ(facts["origins"]["vocab_size"], "weights");
  EXPECT_EQ(facts["oddities"].size(), 1u);
  // V 59, L 3, HD 28, d 24, F 40: the output weights are the embedding, one u
  // and one v serve all layers, frequencies are no parameters.
  const int layer = 5 * 28 * 24 + 2 * 24 * 40 + 40 + 24 + 4 * 24;
  EXPECT_EQ(facts["parameters"], 59 * 24 + 59 + 2 * 28 + 3 * layer);
  // Three layers, 12 rows of 24.
  EXPECT_EQ(facts["memory_bytes_per_session"]["f32"], 3 * 12 * 24 * 4);
  EXPECT_EQ(facts["memory_bytes_per_session"]["bf16"], 3 * 12 * 24 * 2);
  const ProgramResult text = RunTxlModel("inspect " + source + " --tensors");
  EXPECT_THAT(text.output, AllOf(HasSubstr("layer.2.wq"), HasSubstr("oddities"),
                                 HasSubstr("checkpoint"), HasSubstr("KiB"),
                                 HasSubstr("none found (token ids only)")));
}

TEST(InspectCheckpointTest, TakesASpec) {
  const ProgramResult result =
      RunTxlModel("inspect " + Native("kimi-samelength-clamp", "model.pt") +
                  " --json" + Spec("kimi-samelength-clamp"));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json facts = json::parse(result.output);
  EXPECT_EQ(facts["config"]["window"], 9);
  EXPECT_EQ(facts["origins"]["window"], "spec");
  EXPECT_EQ(facts["memory_bytes_per_session"]["f32"], 3 * 9 * 24 * 4);
}

TEST(InspectCheckpointTest, AFolderOfHuggingFaceIsACheckpoint) {
  const std::string folder = FreshTestFolder("inspect_folder");
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(Native("hf-prelnorm-tied-r", file),
                               folder + "/" + file);
  }
  const ProgramResult result = RunTxlModel("inspect " + folder + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json facts = json::parse(result.output);
  EXPECT_EQ(facts["family"], "huggingface");
  EXPECT_EQ(facts["container"], "safetensors");
  EXPECT_EQ(facts["config"]["ln_eps"], 2e-5);
}

TEST(InspectCheckpointTest, ABrokenFileIsOneLine) {
  const std::string folder = FreshTestFolder("inspect_broken");
  const std::string whole = ReadTestFile(Native("kimi-char", "model.pt"));
  WriteTestFile(folder + "/cut.pt", whole.substr(0, whole.size() / 2));
  const ProgramResult result = RunTxlModel("inspect " + folder + "/cut.pt");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("cut.pt"));
  EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1);
}

}  // namespace
}  // namespace txl
