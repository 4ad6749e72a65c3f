#include "model/config/model_config.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// All that has no default.
json Smallest() {
  return {{"vocab_size", 12}, {"n_layer", 2}, {"n_head", 2}, {"d_head", 3},
          {"d_model", 8},     {"d_inner", 5}, {"mem_len", 4}};
}

ModelConfig ParseConfig(const json& object) {
  absl::StatusOr<ModelConfig> config =
      ParseModelConfig(object.dump(), "config.json");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : ModelConfig();
}

ModelConfig With(const std::string& field, const json& value) {
  json object = Smallest();
  object[field] = value;
  return ParseConfig(object);
}

TEST(ModelConfig, FieldsWithoutASayTakeThePapersDefaults) {
  const ModelConfig config = ParseConfig(Smallest());
  EXPECT_EQ(config.vocab_size, 12);
  EXPECT_EQ(config.n_layer, 2);
  EXPECT_EQ(config.n_head, 2);
  EXPECT_EQ(config.d_head, 3);
  EXPECT_EQ(config.d_model, 8);
  EXPECT_EQ(config.d_embed, 8);
  EXPECT_EQ(config.d_inner, 5);
  EXPECT_EQ(config.mem_len, 4);
  EXPECT_EQ(config.norm, NormPlacement::kPost);
  EXPECT_FALSE(config.final_norm);
  EXPECT_EQ(config.ln_eps, 1e-5);
  EXPECT_EQ(config.act, Activation::kRelu);
  EXPECT_EQ(config.ff_out_act, Activation::kNone);
  EXPECT_EQ(config.pos, PositionKind::kSinConcat);
  EXPECT_EQ(config.pos_base, 10000);
  EXPECT_EQ(config.clamp_len, std::nullopt);
  EXPECT_EQ(config.window, std::nullopt);
  EXPECT_EQ(config.mem_init, MemoryInit::kEmpty);
  EXPECT_TRUE(config.scale_embedding);
  EXPECT_THAT(config.cutoffs, IsEmpty());
  EXPECT_EQ(config.div_val, 1);
  EXPECT_EQ(config.emb_proj_bin0, std::nullopt);
  EXPECT_FALSE(config.tie_weight);
  EXPECT_THAT(config.tie_projs, IsEmpty());
  EXPECT_TRUE(config.head_bias);
}

TEST(ModelConfig, FieldsThatAreNotTheModelsAreIgnored) {
  json object = Smallest();
  object["family"] = "KPT";
  object["tolerance"] = 1e-9;
  object["cluster_order"] = "reversed";
  object["observed"] = {{"mean_entropy_nats", 2.6}};
  object["ext_len"] = 0;
  EXPECT_EQ(ParseConfig(object).d_model, 8);
}

TEST(ModelConfig, NullAndMinusOneSwitchTheWindowOff) {
  EXPECT_EQ(With("window", nullptr).window, std::nullopt);
  EXPECT_EQ(With("window", -1).window, std::nullopt);
  EXPECT_EQ(With("window", 1).window, 1);
  EXPECT_EQ(With("window", 5).window, 5);
}

TEST(ModelConfig, NullZeroAndMinusOneSwitchTheClampOff) {
  EXPECT_EQ(With("clamp_len", nullptr).clamp_len, std::nullopt);
  EXPECT_EQ(With("clamp_len", -1).clamp_len, std::nullopt);
  EXPECT_EQ(With("clamp_len", 0).clamp_len, std::nullopt);
  EXPECT_EQ(With("clamp_len", 7).clamp_len, 7);
}

TEST(ModelConfig, TheEmbeddingScaleIsRootOfDOrOne) {
  EXPECT_TRUE(With("emb_scale", "sqrt_d").scale_embedding);
  EXPECT_FALSE(With("emb_scale", "1").scale_embedding);
  EXPECT_FALSE(With("emb_scale", 1).scale_embedding);
  EXPECT_FALSE(With("emb_scale", 1.0).scale_embedding);
}

TEST(ModelConfig, TheFirstProjectionIsPresentAbsentOrLeftToTheFile) {
  EXPECT_EQ(With("emb_proj_bin0", "present").emb_proj_bin0, true);
  EXPECT_EQ(With("emb_proj_bin0", "absent").emb_proj_bin0, false);
  EXPECT_EQ(With("emb_proj_bin0", nullptr).emb_proj_bin0, false);
  EXPECT_EQ(ParseConfig(Smallest()).emb_proj_bin0, std::nullopt);
}

TEST(ModelConfig, OddWidthsAreFineWhereNoHalvesAreConcatenated) {
  json object = Smallest();
  object["d_model"] = 7;
  object["pos"] = "sin_interleaved_raw";
  EXPECT_EQ(ParseConfig(object).d_model, 7);
  object["pos"] = "table";
  EXPECT_EQ(ParseConfig(object).d_model, 7);
}

TEST(ModelConfig, BinsPartitionTheVocabularyAndShrink) {
  json object = Smallest();
  object["cutoffs"] = {5, 7};
  object["div_val"] = 2;
  object["d_embed"] = 10;
  const ModelConfig config = ParseConfig(object);
  ASSERT_EQ(config.n_bins(), 3);
  EXPECT_THAT((std::vector<int64_t>{config.bin_begin(0), config.bin_begin(1),
                                    config.bin_begin(2), config.bin_begin(3)}),
              ElementsAre(0, 5, 7, 12));
  EXPECT_THAT((std::vector<int64_t>{config.bin_size(0), config.bin_size(1),
                                    config.bin_size(2)}),
              ElementsAre(5, 2, 5));
  // Python's 10 // 2**b.
  EXPECT_THAT((std::vector<int64_t>{config.bin_width(0), config.bin_width(1),
                                    config.bin_width(2)}),
              ElementsAre(10, 5, 2));
}

TEST(ModelConfig, OneBinHoldsTheWholeVocabulary) {
  const ModelConfig config = ParseConfig(Smallest());
  EXPECT_EQ(config.n_bins(), 1);
  EXPECT_EQ(config.bin_begin(0), 0);
  EXPECT_EQ(config.bin_size(0), 12);
  EXPECT_EQ(config.bin_width(0), 8);
}

TEST(ModelConfig, ServingSeesAtMostTheMemoryAndTheTokenItself) {
  EXPECT_EQ(ParseConfig(Smallest()).serving_window(), 5);
  EXPECT_EQ(With("window", 3).serving_window(), 3);
  EXPECT_EQ(With("window", 5).serving_window(), 5);
  EXPECT_EQ(With("window", 9).serving_window(), 5);
  EXPECT_EQ(With("mem_len", 0).serving_window(), 1);
}

TEST(ModelConfig, DistancesEndWithTheWindowOrTheClamp) {
  EXPECT_EQ(ParseConfig(Smallest()).position_distances(), 5);
  EXPECT_EQ(With("window", 3).position_distances(), 3);
  EXPECT_EQ(With("clamp_len", 2).position_distances(), 3);
  EXPECT_EQ(With("clamp_len", 7).position_distances(), 5);
  EXPECT_EQ(With("mem_len", 0).position_distances(), 1);
}

TEST(ModelConfig, ATablesDistancesAreNotClamped) {
  json object = Smallest();
  object["pos"] = "table";
  object["clamp_len"] = 2;
  EXPECT_EQ(ParseConfig(object).position_distances(), 5);
}

TEST(ModelConfig, LargePublishedModelsAreWithinTheBounds) {
  json object = Smallest();
  object["vocab_size"] = 793471;  // lm1b
  object["n_layer"] = 24;
  object["n_head"] = 32;  // "WenHui"
  object["d_head"] = 80;
  object["d_model"] = 2560;
  object["d_inner"] = 10240;
  object["mem_len"] = 3800;
  object["cutoffs"] = {60000, 100000, 640000};
  object["div_val"] = 4;
  EXPECT_EQ(ParseConfig(object).bin_width(3), 40);
}

class GoldenConfig : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = GoldenDirectory(GetParam()) + "/config.json";
    std::ifstream in(path);
    ASSERT_TRUE(in) << path;
    std::ostringstream content;
    content << in.rdbuf();
    text_ = content.str();
    object_ = json::parse(text_);
    config_ = ParseConfig(object_);
  }

  std::string text_;
  json object_;
  ModelConfig config_;
};

TEST_P(GoldenConfig, EveryFieldIsTakenOver) {
  const auto size = [&](const char* name) {
    return object_[name].get<int64_t>();
  };
  EXPECT_EQ(config_.vocab_size, size("vocab_size"));
  EXPECT_EQ(config_.n_layer, size("n_layer"));
  EXPECT_EQ(config_.n_head, size("n_head"));
  EXPECT_EQ(config_.d_head, size("d_head"));
  EXPECT_EQ(config_.d_model, size("d_model"));
  EXPECT_EQ(config_.d_embed, size("d_embed"));
  EXPECT_EQ(config_.d_inner, size("d_inner"));
  EXPECT_EQ(config_.mem_len, size("mem_len"));
  EXPECT_EQ(config_.div_val, size("div_val"));
  EXPECT_EQ(config_.clamp_len.value_or(-1), size("clamp_len"));
  EXPECT_EQ(config_.ln_eps, object_["ln_eps"].get<double>());
  EXPECT_EQ(config_.cutoffs, object_["cutoffs"].get<std::vector<int64_t>>());
  EXPECT_EQ(config_.tie_projs, object_["tie_projs"].get<std::vector<bool>>());
  EXPECT_EQ(config_.tie_weight, object_["tie_weight"].get<bool>());
  EXPECT_EQ(config_.head_bias, object_["head_bias"].get<bool>());
  EXPECT_EQ(config_.final_norm, object_["final_norm"].get<bool>());
  EXPECT_EQ(config_.norm == NormPlacement::kPre, object_["norm"] == "pre");
  EXPECT_EQ(config_.act == Activation::kGeluTanh,
            object_["act"] == "gelu_tanh");
  EXPECT_EQ(config_.mem_init == MemoryInit::kZeros,
            object_["mem_init"] == "zeros");
  EXPECT_EQ(config_.scale_embedding, object_["emb_scale"] == "sqrt_d");
  EXPECT_EQ(config_.pos == PositionKind::kTable, object_["pos"] == "table");
  EXPECT_EQ(config_.pos == PositionKind::kSinConcat,
            object_["pos"] == "sin_concat");
  EXPECT_EQ(config_.emb_proj_bin0, object_["emb_proj_bin0"] == "present");
  EXPECT_EQ(config_.window.value_or(-1),
            object_["window"].is_null() ? -1 : size("window"));
}

TEST_P(GoldenConfig, WrittenAndReadAgainItIsTheSame) {
  const std::string written = ModelConfigToJson(config_);
  const json again = json::parse(written);
  for (const auto& [name, value] : again.items()) {
    // null and "absent" are one thing to us.
    if (name == "emb_proj_bin0" && object_[name].is_null()) continue;
    EXPECT_EQ(value, object_[name]) << name;
  }
  EXPECT_EQ(ModelConfigToJson(ParseConfig(again)), written);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenConfig, testing::ValuesIn(kGoldenCases),
                         [](const auto& info) {
                           return GoldenParamName(info.param);
                         });

json Beats() {
  return {{"separator", 8}, {"duration0", 9}, {"mask", 4},
          {"restart", 0},   {"bar_ticks", 6}, {"bars", 5}};
}

TEST(ModelConfig, BeatPositionsAreReadAndWrittenWhole) {
  const ModelConfig config = With("beat_positions", Beats());
  EXPECT_EQ(config.beat_positions, (BeatPositions{8, 9, 4, 0, 6, 5}));
  EXPECT_EQ(json::parse(ModelConfigToJson(config))["beat_positions"], Beats());
}

TEST(ModelConfig, WithoutBeatPositionsTheyAreNotMentioned) {
  for (const ModelConfig& config :
       {ParseConfig(Smallest()), With("beat_positions", nullptr)}) {
    EXPECT_EQ(config.beat_positions, std::nullopt);
    EXPECT_FALSE(
        json::parse(ModelConfigToJson(config)).contains("beat_positions"));
  }
}

TEST(ModelConfig, ABadFieldOfBeatPositionsIsNamed) {
  const auto expect = [](const json& beats, const std::string& named) {
    json object = Smallest();
    object["beat_positions"] = beats;
    const auto config = ParseModelConfig(object.dump(), "config.json");
    EXPECT_THAT(std::string(config.status().message()),
                AllOf(HasSubstr("config.json"), HasSubstr(named)));
  };
  expect(true, "beat_positions");
  const json whole = Beats();
  for (const auto& [field, value] : whole.items()) {
    json beats = Beats();
    beats.erase(field);
    expect(beats, "beat_positions." + field);
    // Ids of the vocabulary; tables of at least a row.
    for (const json& bad : {json("8"), json(-1), json(1 << 20)}) {
      beats[field] = bad;
      expect(beats, "beat_positions." + field);
    }
  }
  json beats = Beats();
  beats["bar_tick"] = 6;
  expect(beats, "bar_tick");
}

TEST(ModelConfigToJson, KeepsAFieldThatWasLeftToTheFile) {
  const json written = json::parse(ModelConfigToJson(ParseConfig(Smallest())));
  EXPECT_EQ(ParseConfig(written).emb_proj_bin0, std::nullopt);
}

TEST(ModelConfigToJson, WritesEveryUnusualChoice) {
  json object = Smallest();
  object["norm"] = "pre";
  object["final_norm"] = true;
  object["ln_eps"] = 1e-12;
  object["act"] = "gelu_tanh";
  object["ff_out_act"] = "relu";
  object["pos"] = "sin_interleaved_raw";
  object["pos_base"] = 500;
  object["clamp_len"] = 3;
  object["window"] = 4;
  object["mem_init"] = "zeros";
  object["emb_scale"] = "1";
  object["cutoffs"] = {4, 9};
  object["div_val"] = 2;
  object["emb_proj_bin0"] = "present";
  object["tie_weight"] = true;
  object["tie_projs"] = {false, true, true};
  object["head_bias"] = false;
  const json written = json::parse(ModelConfigToJson(ParseConfig(object)));
  for (const auto& [name, value] : object.items()) {
    EXPECT_EQ(written[name], value) << name;
  }
}

}  // namespace
}  // namespace txl
