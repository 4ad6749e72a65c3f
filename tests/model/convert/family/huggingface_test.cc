// Hugging Face's state dicts: what differs from kimiyoung's, and what its
// config.json says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/convert/family/family.h"
#include "tests/model/convert/family/kpt_tensors.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

KptShape HuggingFaceShape() {
  return {.vocab = 10,
          .d_embed = 2,
          .cutoffs = {3, 5, 6},
          .tie_projs = {false, true, true, true}};
}

json Config() {
  return {{"vocab_size", 10},
          {"cutoffs", {3, 5, 6}},
          {"div_val", 1},
          {"d_model", 4},
          {"mem_len", 6},
          {"clamp_len", 3},
          {"same_length", true},
          {"pre_lnorm", false},
          {"tie_projs", {false, true, true, true}},
          {"tie_weight", true},
          {"layer_norm_epsilon", 2e-5}};
}

// u and v in each layer, as untie_r does.
TensorMap Tensors() {
  TensorMap tensors = KptTrunkTensors(HuggingFaceShape(), "transformer.");
  tensors.merge(KptHeadTensors(HuggingFaceShape(), "transformer."));
  for (const char* bias : {"r_w_bias", "r_r_bias"}) {
    tensors.erase(std::string("transformer.") + bias);
    for (int l = 0; l < 2; ++l) {
      tensors["transformer.layers." + std::to_string(l) + ".dec_attn." + bias] =
          CountingTensor({2, 3}, 1000.f + static_cast<float>(l));
    }
  }
  return tensors;
}

absl::StatusOr<ConversionPlan> PlanOf(const TensorMap& tensors,
                                      const json& config,
                                      const json& spec = json()) {
  const NativeCheckpoint checkpoint = StateDict(tensors);
  return PlanHuggingFace({checkpoint, config, spec});
}

std::string ErrorOf(const TensorMap& tensors, const json& config) {
  const auto plan = PlanOf(tensors, config);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(HuggingFaceTest, TheConfigSaysWhatTheWeightsDoNot) {
  const auto plan = PlanOf(Tensors(), Config());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->family, "huggingface");
  EXPECT_EQ(plan->config.mem_len, 6);
  EXPECT_EQ(plan->config.window, 6);
  EXPECT_EQ(plan->config.clamp_len, 3);
  EXPECT_EQ(plan->config.ln_eps, 2e-5);
  EXPECT_EQ(plan->config.norm, NormPlacement::kPost);
  EXPECT_EQ(plan->fields.at("clamp_len").origin, FieldOrigin::kCheckpoint);
}

TEST(HuggingFaceTest, MemoryStartsWithZeros) {
  const auto plan = PlanOf(Tensors(), Config());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_init, MemoryInit::kZeros);
  EXPECT_EQ(plan->fields.at("mem_init").origin, FieldOrigin::kFamily);
}

TEST(HuggingFaceTest, ClustersStandInForwardOrder) {
  const TensorMap tensors = Tensors();
  const auto plan = PlanOf(tensors, Config());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ValuesOf(*plan, "head.cluster.w"),
            FloatsOf(tensors.at("crit.cluster_weight")));
  EXPECT_EQ(ValuesOf(*plan, "head.cluster.b"),
            FloatsOf(tensors.at("crit.cluster_bias")));
}

TEST(HuggingFaceTest, EveryLayerHasItsOwnBiases) {
  const auto plan = PlanOf(Tensors(), Config());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ValuesOf(*plan, "layer.0.u")[0], 1000);
  EXPECT_EQ(ValuesOf(*plan, "layer.1.v")[0], 1001);
}

TEST(HuggingFaceTest, SharedBiasesMayStandUnderEveryName) {
  TensorMap tensors = Tensors();
  for (const char* bias : {"r_w_bias", "r_r_bias"}) {
    const StoredTensor shared = CountingTensor({2, 3}, 50);
    tensors[std::string("transformer.") + bias] = shared;
    for (const char* layer : {"0", "1"}) {
      tensors[std::string("transformer.layers.") + layer + ".dec_attn." +
              bias] = shared;
    }
  }
  const auto plan = PlanOf(tensors, Config());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ValuesOf(*plan, "layer.1.u")[0], 50);
  tensors["transformer.layers.1.dec_attn.r_w_bias"] =
      CountingTensor({2, 3}, 51);
  EXPECT_THAT(ErrorOf(tensors, Config()),
              HasSubstr("transformer.layers.1.dec_attn.r_w_bias"));
}

TEST(HuggingFaceTest, TiedTensorsMayBeAbsent) {
  TensorMap tensors = Tensors();
  for (const char* name : {"crit.out_layers.0.weight", "crit.out_projs.1",
                           "crit.out_projs.2", "crit.out_projs.3"}) {
    ASSERT_EQ(tensors.erase(name), 1u) << name;
  }
  const auto plan = PlanOf(tensors, Config());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->config.tie_weight);
  EXPECT_THAT(plan->config.tie_projs, ElementsAre(false, true, true, true));
}

TEST(HuggingFaceTest, AnUntiedTensorMayNot) {
  TensorMap tensors = Tensors();
  tensors.erase("crit.out_projs.0");
  EXPECT_THAT(ErrorOf(tensors, Config()),
              HasSubstr("crit.out_projs.0 is missing"));
  tensors = Tensors();
  tensors.erase("crit.out_layers.0.weight");
  json config = Config();
  config["tie_weight"] = false;
  EXPECT_THAT(ErrorOf(tensors, config),
              HasSubstr("crit.out_layers.0.weight is missing"));
}

TEST(HuggingFaceTest, OlderConfigsShareAllProjectionsButTheFirst) {
  json config = Config();
  config.erase("tie_projs");
  TensorMap tensors = Tensors();
  for (const char* name :
       {"crit.out_projs.1", "crit.out_projs.2", "crit.out_projs.3"}) {
    tensors.erase(name);
  }
  const auto plan = PlanOf(tensors, config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->config.tie_projs, ElementsAre(false, true, true, true));
  config["proj_share_all_but_first"] = false;
  EXPECT_THAT(ErrorOf(tensors, config),
              HasSubstr("crit.out_projs.1 is missing"));
}

TEST(HuggingFaceTest, WithoutAConfigTheReleasedModelsValuesHold) {
  const auto plan = PlanOf(Tensors(), json(), json{{"cutoffs", {3, 5, 6}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_len, 1600);
  EXPECT_EQ(plan->config.window, 1600);
  EXPECT_EQ(plan->config.clamp_len, 1000);
  EXPECT_THAT(plan->oddities,
              Contains(HasSubstr("no config.json lies beside the weights; as "
                                 "of the released model: mem_len 1600, window "
                                 "1600, clamp_len 1000, norm \"post\"")));
}

// Three bins, where the released model has four.
TEST(HuggingFaceTest, WithoutAConfigTheWeightsSayHowManyBinsThereAre) {
  KptShape shape = HuggingFaceShape();
  shape.cutoffs = {3, 5};
  shape.tie_projs = {false, true, true};
  TensorMap tensors = KptTrunkTensors(shape, "transformer.");
  tensors.merge(KptHeadTensors(shape, "transformer."));
  const auto plan = PlanOf(tensors, json(), json{{"cutoffs", {3, 5}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->config.tie_projs, ElementsAre(false, true, true));
  const std::string error = ErrorOf(tensors, json());
  EXPECT_THAT(error, HasSubstr("field cutoffs is nowhere in the file"));
  EXPECT_THAT(error, HasSubstr("no config.json lies beside the weights"));
}

TEST(HuggingFaceTest, OlderNamesOfFieldsAreRead) {
  json config = Config();
  config.erase("vocab_size");
  config["n_token"] = 11;
  EXPECT_THAT(ErrorOf(Tensors(), config), HasSubstr("field vocab_size"));
  config["n_token"] = 10;
  config.erase("tie_weight");
  config["tie_word_embeddings"] = true;
  EXPECT_TRUE(PlanOf(Tensors(), config).ok());
}

TEST(HuggingFaceTest, AConfigThatContradictsTheWeightsIsNamed) {
  json config = Config();
  config["d_model"] = int64_t{1} << 40;
  EXPECT_THAT(ErrorOf(Tensors(), config), HasSubstr("field d_model"));
  config = Config();
  config["cutoffs"] = {5, 3, 6};
  EXPECT_THAT(ErrorOf(Tensors(), config), HasSubstr("cutoffs"));
  config = Config();
  config["tie_projs"] = {false, true};
  EXPECT_THAT(ErrorOf(Tensors(), config), HasSubstr("tie_projs"));
}

TEST(HuggingFaceTest, AFieldOfAnotherTypeIsNamed) {
  json config = Config();
  config["mem_len"] = "long";
  EXPECT_THAT(ErrorOf(Tensors(), config), HasSubstr("mem_len"));
  config = Config();
  config["pre_lnorm"] = 3;
  EXPECT_THAT(ErrorOf(Tensors(), config), HasSubstr("norm"));
}

// A default in the place of a value that is not understood is another model.
TEST(HuggingFaceTest, NoValueOfAnotherTypeFallsBackToADefault) {
  const std::vector<json> wrong = {"x", "1", 2.5, json::array({"a"}),
                                   json::object({{"a", 1}})};
  for (const char* field :
       {"same_length", "pre_lnorm", "tie_weight", "tie_word_embeddings",
        "proj_share_all_but_first", "attn_type", "ext_len", "mem_len",
        "clamp_len", "div_val", "cutoffs", "tie_projs", "vocab_size", "n_layer",
        "n_head", "d_head", "d_model", "d_embed", "d_inner"}) {
    for (const json& value : wrong) {
      json config = Config();
      config.erase("tie_projs");
      config[field] = value;
      EXPECT_THAT(ErrorOf(Tensors(), config),
                  HasSubstr(std::string("config.json: field ") + field +
                            " is " + value.dump() + ", must be "))
          << value;
    }
    json config = Config();
    config[field] = nullptr;  // as if it were not there
    json without = Config();
    without.erase(field);
    const auto of_null = PlanOf(Tensors(), config);
    const auto of_none = PlanOf(Tensors(), without);
    ASSERT_EQ(of_null.status(), of_none.status()) << field;
    if (!of_none.ok()) continue;
    EXPECT_EQ(ModelConfigToJson(of_null->config),
              ModelConfigToJson(of_none->config));
  }
  json config = Config();
  config["layer_norm_epsilon"] = "1e-5";
  EXPECT_THAT(ErrorOf(Tensors(), config), HasSubstr("layer_norm_epsilon"));
}

TEST(HuggingFaceTest, OnesAndZerosAreFlagsAndWholeFloatsIntegers) {
  for (const bool same_length : {false, true}) {
    json config = Config();
    config["same_length"] = same_length ? 1 : 0;
    config["pre_lnorm"] = 0;
    config["tie_projs"] = {0, 1, 1, 1};
    config["mem_len"] = 6.0;
    config["d_model"] = 4.0;
    config["cutoffs"] = {3.0, 5.0, 6.0};
    json plain = Config();
    plain["same_length"] = same_length;
    const auto plan = PlanOf(Tensors(), config);
    const auto expected = PlanOf(Tensors(), plain);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(ModelConfigToJson(plan->config),
              ModelConfigToJson(expected->config));
    EXPECT_EQ(plan->config.window.has_value(), same_length);
  }
}

TEST(HuggingFaceTest, ABaseModelHasNoOutput) {
  EXPECT_THAT(
      ErrorOf(KptTrunkTensors(HuggingFaceShape(), "transformer."), Config()),
      HasSubstr("base model"));
}

}  // namespace
}  // namespace txl
