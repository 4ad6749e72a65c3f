// NVIDIA's checkpoints from 2020 on: biases in a list, weights only where they
// are not tied, further names of the shared projections, a window of one more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "model/convert/family/families.h"
#include "tests/model/convert/family/kpt_tensors.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

KptShape NvidiaShape() {
  KptShape shape;
  shape.vocab = 9;
  shape.d_embed = 4;
  shape.cutoffs = {4, 6};
  shape.div_val = 2;
  shape.tie_projs = {false, true, true};
  return shape;
}

json ModelConfigOf() {
  return {{"n_token", 9},       {"n_layer", 2},
          {"mem_len", 5},       {"cutoffs", {4, 6}},
          {"div_val", 2},       {"pre_lnorm", true},
          {"tie_weight", true}, {"same_length", true},
          {"clamp_len", -1},    {"attn_type", 0},
          {"ext_len", 0},       {"tie_projs", {false, true, true}}};
}

TensorMap ModelState() {
  TensorMap tensors = KptTensors(NvidiaShape());
  for (int b = 0; b < 3; ++b) {
    tensors.erase(absl::StrCat("crit.out_layers.", b, ".weight"));
    auto bias = tensors.extract(absl::StrCat("crit.out_layers.", b, ".bias"));
    bias.key() = absl::StrCat("crit.out_layers_biases.", b);
    tensors.insert(std::move(bias));
    tensors[absl::StrCat("crit.shared_out_projs.", b)] =
        tensors[absl::StrCat("word_emb.emb_projs.", b)];
    if (b > 0) tensors.erase(absl::StrCat("crit.out_projs.", b));
  }
  return tensors;
}

// The dictionary that train.py saves.
NativeCheckpoint Checkpoint(const TensorMap& state, const json& config) {
  NativeCheckpoint checkpoint;
  checkpoint.path = "checkpoint_best.pt";
  for (const auto& [name, tensor] : state) {
    checkpoint.tensors["model_state." + name] = tensor;
    checkpoint.data["model_state"][name] = {{kTensorKey, name}};
  }
  checkpoint.tensors["memory.0"] = CountingTensor({3});
  checkpoint.data["memory"] = {{{kTensorKey, "memory.0"}}};
  checkpoint.data["model_config"] = config;
  checkpoint.data["args"] = {
      {kClassKey, "argparse.Namespace"}, {"mem_len", 777}, {"not_tied", false}};
  return checkpoint;
}

absl::StatusOr<ConversionPlan> PlanNvidiaFile(const TensorMap& state,
                                              const json& config,
                                              const json& spec = json()) {
  const NativeCheckpoint checkpoint = Checkpoint(state, config);
  return PlanNvidia({checkpoint, json(), spec});
}

TEST(NvidiaTest, TheModelsConfigGoesBeforeTheArguments) {
  const auto plan = PlanNvidiaFile(ModelState(), ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->family, "nvidia");
  EXPECT_EQ(plan->config.mem_len, 5);
  EXPECT_EQ(plan->config.norm, NormPlacement::kPre);
}

TEST(NvidiaTest, ArgumentsDoWithoutAConfig) {
  const auto plan = PlanNvidiaFile(ModelState(), json());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_len, 777);
}

TEST(NvidiaTest, SameLengthShowsOneKeyBesidesTheMemory) {
  const auto plan = PlanNvidiaFile(ModelState(), ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.window, 6);
  const auto longer =
      PlanNvidiaFile(ModelState(), ModelConfigOf(), {{"mem_len", 40}});
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(longer->config.window, 41);
}

TEST(NvidiaTest, BiasesAndClustersAreFound) {
  const TensorMap state = ModelState();
  const auto plan = PlanNvidiaFile(state, ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ValuesOf(*plan, "head.1.b"),
            FloatsOf(state.at("crit.out_layers_biases.1")));
  const std::vector<float> bias = FloatsOf(state.at("crit.cluster_bias"));
  EXPECT_THAT(ValuesOf(*plan, "head.cluster.b"), ElementsAre(bias[1], bias[0]));
}

TEST(NvidiaTest, ProjectionsAreTiedWhereTheyAreAbsent) {
  const TensorMap state = ModelState();
  const auto plan = PlanNvidiaFile(state, ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->config.tie_projs, ElementsAre(false, true, true));
  EXPECT_EQ(ValuesOf(*plan, "head.0.proj"),
            FloatsOf(state.at("crit.out_projs.0")));
  EXPECT_EQ(ValuesOf(*plan, "emb.2.proj"),
            FloatsOf(state.at("word_emb.emb_projs.2")));
}

TEST(NvidiaTest, UntiedWeightsHaveTheirOwnList) {
  TensorMap state = ModelState();
  json config = ModelConfigOf();
  config["tie_weight"] = false;
  for (int b = 0; b < 3; ++b) {
    state[absl::StrCat("crit.out_layers_weights.", b)] = CountingTensor(
        state[absl::StrCat("word_emb.emb_layers.", b, ".weight")].shape, 500);
  }
  const auto plan = PlanNvidiaFile(state, config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->config.tie_weight);
  EXPECT_EQ(ValuesOf(*plan, "head.2.w")[0], 500);
}

TEST(NvidiaTest, ASharedProjectionThatDiffersIsNamed) {
  TensorMap state = ModelState();
  state["crit.shared_out_projs.1"] = CountingTensor({4, 2}, 500);
  EXPECT_THAT(PlanNvidiaFile(state, ModelConfigOf()).status().message(),
              HasSubstr("crit.shared_out_projs.1"));
}

TEST(NvidiaTest, AProjectionThatTheConfigTiesMustBeEqual) {
  TensorMap state = ModelState();
  state["crit.out_projs.1"] = CountingTensor({4, 2}, 500);
  EXPECT_THAT(PlanNvidiaFile(state, ModelConfigOf()).status().message(),
              HasSubstr("crit.out_projs.1"));
}

TEST(NvidiaTest, AForeignEntryInTheStateIsNamed) {
  NativeCheckpoint checkpoint = Checkpoint(ModelState(), ModelConfigOf());
  checkpoint.data["model_state"]["extra"] = {{kClassKey, "builtins.eval"}};
  const auto plan = PlanNvidia({checkpoint, json(), json()});
  EXPECT_THAT(plan.status().message(), HasSubstr("model_state.extra"));
}

}  // namespace
}  // namespace txl
