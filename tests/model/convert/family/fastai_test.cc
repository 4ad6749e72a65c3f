// fastai's TransformerXL, dressed from golden weights of the same arithmetic:
// layouts of bare and wrapped files, with and without biases.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/model/convert/family/golden_weights.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The golden case with fastai's semantics: no scaling of the embedding.
GoldenWeights FastaiGolden() {
  GoldenWeights golden = LoadGolden("ptb-blog");
  golden.config["emb_scale"] = "1";
  return golden;
}

// Adds attention biases, which only some configurations have.
void AddBiases(GoldenWeights& golden) {
  float next = 0;
  for (int64_t l = 0; l < golden.layers(); ++l) {
    const int64_t width = golden.layer(l, "wq").shape[0];
    for (const char* name : {"bq", "bk", "bv", "br", "bo"}) {
      const int64_t size = std::string(name) == "bo" ? 32 : width;
      Values bias = {{size}, {}};
      for (int64_t i = 0; i < size; ++i) bias.data.push_back(++next);
      golden.tensors[absl::StrCat("layer.", l, ".", name)] = bias;
    }
  }
}

// The state dict of SequentialRNN(TransformerXL, LinearDecoder).
std::map<std::string, Values> StateDictOf(const GoldenWeights& golden,
                                          bool double_drop = true) {
  std::map<std::string, Values> out;
  const std::string second = double_drop ? "3" : "2";
  const std::string norm = double_drop ? "6" : "5";
  out["0.encoder.weight"] = golden.at("emb.0.w");
  out["0.pos_enc.freq"] = golden.at("pos.inv_freq");
  const int64_t heads = golden.config["n_head"];
  const int64_t d_head = golden.config["d_head"];
  out["0.u"] = Reshaped(golden.layer(0, "u"), {heads, 1, d_head});
  out["0.v"] = Reshaped(golden.layer(0, "v"), {heads, 1, d_head});
  out["1.decoder.bias"] = golden.at("head.0.b");
  for (int64_t l = 0; l < golden.layers(); ++l) {
    const std::string layer = absl::StrCat("0.layers.", l, ".");
    const auto put = [&](const std::string& native, const char* name) {
      const std::string own = absl::StrCat("layer.", l, ".", name);
      if (golden.tensors.contains(own)) out[layer + native] = golden.at(own);
    };
    out[layer + "mhra.attention.weight"] = BelowEachOther(
        {golden.layer(l, "wq"), golden.layer(l, "wk"), golden.layer(l, "wv")});
    if (golden.tensors.contains("layer.0.bq")) {
      out[layer + "mhra.attention.bias"] =
          BelowEachOther({golden.layer(l, "bq"), golden.layer(l, "bk"),
                          golden.layer(l, "bv")});
    }
    put("mhra.r_attn.weight", "wr");
    put("mhra.r_attn.bias", "br");
    put("mhra.out.weight", "wo");
    put("mhra.out.bias", "bo");
    put("mhra.ln.weight", "ln1.g");
    put("mhra.ln.bias", "ln1.b");
    put("ff.layers.0.weight", "ff.w1");
    put("ff.layers.0.bias", "ff.b1");
    put("ff.layers." + second + ".weight", "ff.w2");
    put("ff.layers." + second + ".bias", "ff.b2");
    put("ff.layers." + norm + ".weight", "ln2.g");
    put("ff.layers." + norm + ".bias", "ln2.b");
  }
  return out;
}

// As Learner.save writes it, decoder and encoder one tensor; with `config` as
// musicautobot adds it.
NativeCheckpoint Saved(const std::map<std::string, Values>& model,
                       const json& config = nullptr) {
  NativeCheckpoint checkpoint = Checkpoint(model, "model.");
  checkpoint.tensors["model.1.decoder.weight"] =
      checkpoint.tensors.at("model.0.encoder.weight");
  // An optimizer's state is none of the model.
  checkpoint.tensors["opt.state.0.exp_avg"] = Stored({{1}, {0}});
  if (!config.is_null()) checkpoint.data["config"] = config;
  return checkpoint;
}

// A member of fastai's enumeration, as a pickle has it.
json Activation(int number) {
  return {{kClassKey, "fastai.text.models.transformer.Activation"},
          {kArgsKey, {number}}};
}

TEST(FastaiTest, ASavedLearnerGivesTheGoldenWeightsAndConfig) {
  const GoldenWeights golden = FastaiGolden();
  const auto plan = PlanOf("fastai", Saved(StateDictOf(golden)), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
  EXPECT_TRUE(plan->tensors.contains("pos.inv_freq"));
  EXPECT_THAT(plan->oddities, IsEmpty());
}

TEST(FastaiTest, WithoutTheSecondDropoutTheModulesCloseUp) {
  const GoldenWeights golden = FastaiGolden();
  const auto plan =
      PlanOf("fastai", Saved(StateDictOf(golden, false)), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
}

TEST(FastaiTest, BiasesOfTheAttentionAreTakenWhereThereAreSome) {
  GoldenWeights golden = FastaiGolden();
  AddBiases(golden);
  const auto plan = PlanOf("fastai", Saved(StateDictOf(golden)), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
}

TEST(FastaiTest, AnOutputWithoutBiasHasNone) {
  GoldenWeights golden = FastaiGolden();
  golden.config["head_bias"] = false;
  auto model = StateDictOf(golden);
  golden.tensors.erase("head.0.b");
  model.erase("1.decoder.bias");
  const auto plan = PlanOf("fastai", Saved(model), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

TEST(FastaiTest, ADecoderOfItsOwnIsNotTied) {
  GoldenWeights golden = FastaiGolden();
  auto model = StateDictOf(golden);
  golden.config["tie_weight"] = false;
  golden.tensors["head.0.w"] = ReversedRows(golden.at("emb.0.w"));
  model["1.decoder.weight"] = golden.at("head.0.w");
  const auto plan = PlanOf("fastai", Checkpoint(model), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

TEST(FastaiTest, TheConfigurationInTheFileGivesActivationAndMemory) {
  const auto model = StateDictOf(FastaiGolden());
  for (const auto& [number, act] :
       {std::pair(1, ::txl::Activation::kRelu),
        std::pair(3, ::txl::Activation::kGeluTanh)}) {
    const json config = {{"act", Activation(number)},
                         {"mem_len", 512},
                         {"mask", true},
                         {"tie_weights", true}};
    const auto plan = PlanOf("fastai", Saved(model, config));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->config.act, act);
    EXPECT_EQ(plan->fields.at("act").origin, FieldOrigin::kCheckpoint);
    EXPECT_EQ(plan->config.mem_len, 512);
    EXPECT_EQ(plan->config.window, std::nullopt);
    EXPECT_EQ(plan->config.mem_init, MemoryInit::kEmpty);
    EXPECT_FALSE(plan->config.scale_embedding);
    EXPECT_THAT(plan->oddities, IsEmpty());
  }
  const auto swish = PlanOf("fastai", Saved(model, {{"act", Activation(2)}}));
  EXPECT_THAT(swish.status().message(), HasSubstr("Swish"));
}

TEST(FastaiTest, WhatABareFileDoesNotSayIsFastaisDefault) {
  const auto plan = PlanOf("fastai", Checkpoint(StateDictOf(FastaiGolden())));
  ASSERT_TRUE(plan.ok()) << plan.status();
  // tfmerXL_lm_config.
  EXPECT_EQ(plan->config.act, ::txl::Activation::kRelu);
  EXPECT_EQ(plan->config.mem_len, 150);
  EXPECT_THAT(plan->oddities,
              ElementsAre(HasSubstr("1.decoder.weight"), HasSubstr("mem_len"),
                          HasSubstr("act")));
}

TEST(FastaiTest, AModelThatLooksAheadIsRefused) {
  const auto plan =
      PlanOf("fastai", Saved(StateDictOf(FastaiGolden()), {{"mask", false}}));
  EXPECT_THAT(plan.status().message(), HasSubstr("mask"));
}

// The two tables of beat and bar, with numbers of their own.
void AddBeats(std::map<std::string, Values>& model) {
  const auto table = [](int64_t rows, float first) {
    Values values = {{rows, 32}, {}};
    for (int64_t i = 0; i < rows * 32; ++i) values.data.push_back(first + i);
    return values;
  };
  model["0.beat_enc.beat_enc.weight"] = table(16, 0);
  model["0.beat_enc.bar_enc.weight"] = table(64, 0.5f);
}

json MusicBeats() {
  return {{"separator", 8}, {"duration0", 60}, {"mask", 4},
          {"restart", 0},   {"bar_ticks", 16}, {"bars", 64}};
}

// The golden vocabulary is smaller than musicautobot's: a spec names its ids.
TEST(FastaiTest, BeatPositionsAreTakenAsTheClassDoesUnlessToldOtherwise) {
  GoldenWeights golden = FastaiGolden();
  auto model = StateDictOf(golden);
  AddBeats(model);
  golden.config["beat_positions"] = MusicBeats();
  golden.tensors["emb.beat"] = model["0.beat_enc.beat_enc.weight"];
  golden.tensors["emb.bar"] = model["0.beat_enc.bar_enc.weight"];
  for (const json& config :
       {json{{"encode_position", true}}, json(nullptr), json{{"act", 1}}}) {
    const auto plan = PlanOf("fastai", Saved(model, config), golden.config);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectWeights(*plan, golden);
    ExpectConfig(*plan, golden);
    EXPECT_EQ(plan->config.beat_positions,
              (BeatPositions{8, 60, 4, 0, 16, 64}));
  }
}

TEST(FastaiTest, WithoutASpecBeatPositionsHaveTheIdsOfTheOriginalVocabulary) {
  auto model = StateDictOf(FastaiGolden());
  AddBeats(model);
  // Ids that this vocabulary of 97 does not have.
  EXPECT_THAT(PlanOf("fastai", Saved(model)).status().message(),
              HasSubstr("beat_positions.duration0"));
  model["0.encoder.weight"] = {{312, 32}, std::vector<float>(312 * 32)};
  model["1.decoder.bias"] = {{312}, std::vector<float>(312)};
  const auto plan = PlanOf("fastai", Saved(model));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.beat_positions, (BeatPositions{8, 137, 4, 0, 16, 64}));
  EXPECT_EQ(plan->fields.at("beat_positions").origin, FieldOrigin::kFamily);
  EXPECT_THAT(plan->oddities, Contains(HasSubstr("beat_positions")));
}

TEST(FastaiTest, BeatPositionsAreLeftOutWhereEncodePositionIsFalse) {
  const GoldenWeights golden = FastaiGolden();
  auto model = StateDictOf(golden);
  const json off = {{"encode_position", false}};
  json spec = golden.config;
  // Such a model has no tables; those of another run are not used.
  const auto without = PlanOf("fastai", Saved(model, off), spec);
  ASSERT_TRUE(without.ok()) << without.status();
  ExpectWeights(*without, golden);
  EXPECT_THAT(without->oddities, IsEmpty());
  AddBeats(model);
  spec["encode_position"] = false;
  for (const auto& [config, given] :
       {std::pair(off, golden.config),
        std::pair(json{{"encode_position", true}}, spec)}) {
    const auto plan = PlanOf("fastai", Saved(model, config), given);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectWeights(*plan, golden);
    EXPECT_EQ(plan->config.beat_positions, std::nullopt);
    EXPECT_THAT(plan->oddities, ElementsAre(HasSubstr("encode_position")));
  }
}

TEST(FastaiTest, TablesThatTheConfigurationWantsAreMissed) {
  const auto model = StateDictOf(FastaiGolden());
  const json on = {{"encode_position", true}};
  EXPECT_THAT(PlanOf("fastai", Saved(model, on)).status().message(),
              HasSubstr("0.beat_enc.beat_enc.weight"));
}

TEST(FastaiTest, EachTensorIsChecked) {
  GoldenWeights golden = FastaiGolden();
  AddBiases(golden);
  auto model = StateDictOf(golden);
  model["1.decoder.weight"] = golden.at("emb.0.w");
  std::set<std::string> may_be_absent = {"0.pos_enc.freq", "1.decoder.weight",
                                         "1.decoder.bias"};
  for (const auto& [name, values] : model) {
    const bool bias = name.find("mhra.") != std::string::npos &&
                      name.find("ln.") == std::string::npos &&
                      name.find(".bias") != std::string::npos;
    if (bias) may_be_absent.insert(name);
  }
  ExpectEachTensorIsChecked("fastai", Checkpoint(model), may_be_absent);
}

}  // namespace
}  // namespace txl
