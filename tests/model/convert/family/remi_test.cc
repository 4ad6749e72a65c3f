// REMI and Jazz Transformer: Keras' numbers of layer normalizations, and what
// Keras does differently.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/model/convert/family/tensorflow_weights.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, Values>;

// The golden case with the semantics of Keras.
GoldenWeights RemiGolden() {
  GoldenWeights golden = LoadGolden("ptb-blog");
  golden.config["ln_eps"] = 1e-3;
  golden.config["ff_out_act"] = "relu";
  golden.config["mem_init"] = "zeros";
  return golden;
}

// Keras' name of its n-th layer of a kind, counted from `first`.
std::string KerasNorm(int64_t n) {
  return n == 0 ? "layer_normalization"
                : absl::StrCat("layer_normalization_", n);
}

Variables WithNorms(const GoldenWeights& golden,
                    const std::vector<std::string>& norms) {
  Variables out = TensorFlowTrunk(golden, false, norms);
  out["transformer/normal_embed/lookup_table"] = golden.at("emb.0.w");
  out["transformer/normal_softmax/bias"] = golden.at("head.0.b");
  return out;
}

std::vector<std::string> ScopedNorms(int64_t layers, int64_t first) {
  std::vector<std::string> norms;
  for (int64_t l = 0; l < layers; ++l) {
    const std::string layer = absl::StrCat("transformer/layer_", l, "/");
    norms.push_back(layer + "rel_attn/" + KerasNorm(first + 2 * l));
    norms.push_back(layer + "ff/" + KerasNorm(first + 2 * l + 1));
  }
  return norms;
}

std::vector<std::string> FlatNorms(int64_t layers, int64_t first,
                                   const std::string& scope) {
  std::vector<std::string> norms;
  for (int64_t n = 0; n < 2 * layers; ++n) {
    norms.push_back(scope + KerasNorm(first + n));
  }
  return norms;
}

// Six layers: numbers from 0 to 11, of which 10 and 11 come before 2 in the
// order of letters.
GoldenWeights SixLayers() {
  GoldenWeights golden = RemiGolden();
  golden.config["n_layer"] = 6;
  for (const int64_t l : {4, 5}) {
    const std::string from = absl::StrCat("layer.", l - 4, ".");
    const std::string to = absl::StrCat("layer.", l, ".");
    const auto copied = golden.tensors;
    for (const auto& [name, values] : copied) {
      if (name.rfind(from, 0) != 0) continue;
      Values moved = values;
      const bool shared = name == from + "u" || name == from + "v";
      for (float& value : moved.data) value += shared ? 0 : l;
      golden.tensors[to + name.substr(from.size())] = moved;
    }
  }
  return golden;
}

void ExpectGolden(const std::vector<std::string>& norms,
                  const GoldenWeights& golden) {
  const NativeCheckpoint checkpoint =
      TensorFlowCheckpoint(WithNorms(golden, norms));
  const auto plan = PlanOf("remi", checkpoint, golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

TEST(RemiTest, NormsInTheScopesOfTheirLayers) {
  const GoldenWeights golden = SixLayers();
  ExpectGolden(ScopedNorms(6, 0), golden);
}

TEST(RemiTest, NormsThatOnlyTheirNumbersOrder) {
  const GoldenWeights golden = SixLayers();
  ExpectGolden(FlatNorms(6, 0, "transformer/"), golden);
  ExpectGolden(FlatNorms(6, 0, ""), golden);
}

TEST(RemiTest, NumbersMayStartAnywhere) {
  const GoldenWeights golden = SixLayers();
  ExpectGolden(FlatNorms(6, 24, "transformer/"), golden);
  ExpectGolden(ScopedNorms(6, 95), golden);
}

TEST(RemiTest, TheStateOfTheTrainingIsLeftOut) {
  const GoldenWeights golden = RemiGolden();
  for (const char* scope : {"transformer/", ""}) {
    Variables variables = WithNorms(golden, FlatNorms(4, 0, scope));
    AddTrainingState(variables);
    const auto plan =
        PlanOf("remi", TensorFlowCheckpoint(variables), golden.config);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectWeights(*plan, golden);
  }
}

TEST(RemiTest, SemanticsAreThoseOfTheCode) {
  const GoldenWeights golden = RemiGolden();
  const auto plan = PlanOf(
      "remi", TensorFlowCheckpoint(WithNorms(golden, ScopedNorms(4, 0))));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.ln_eps, 1e-3);
  EXPECT_EQ(plan->config.ff_out_act, Activation::kRelu);
  EXPECT_EQ(plan->config.mem_init, MemoryInit::kZeros);
  EXPECT_EQ(plan->config.mem_len, 512);
  EXPECT_EQ(plan->config.window, std::nullopt);
  EXPECT_TRUE(plan->config.scale_embedding);
  EXPECT_THAT(plan->oddities, ElementsAre(HasSubstr("mem_len")));
}

TEST(RemiTest, ProjectedEmbeddingsAreTied) {
  GoldenWeights golden = RemiGolden();
  golden.config["d_embed"] = 20;
  golden.config["tie_projs"] = {true};
  golden.config["emb_proj_bin0"] = "present";
  for (const char* name : {"emb.0.w", "head.0.w"}) {
    golden.tensors[name] = ColumnsOf(golden.at(name), 0, 20);
  }
  Values projection = {{32, 20}, {}};
  for (int i = 0; i < 640; ++i) projection.data.push_back(i);
  golden.tensors["emb.0.proj"] = projection;
  golden.tensors["head.0.proj"] = projection;
  Variables variables = WithNorms(golden, ScopedNorms(4, 0));
  variables["transformer/normal_embed/proj_W"] = TransposedValues(projection);
  const auto plan =
      PlanOf("remi", TensorFlowCheckpoint(variables), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

TEST(RemiTest, ANormTooFewOrTooManyIsRefused) {
  const GoldenWeights golden = RemiGolden();
  Variables variables = WithNorms(golden, FlatNorms(4, 0, "transformer/"));
  variables.erase("transformer/layer_normalization_3/gamma");
  EXPECT_THAT(
      PlanOf("remi", TensorFlowCheckpoint(variables)).status().message(),
      HasSubstr("holds 7 of layer_normalization"));
  variables = WithNorms(golden, FlatNorms(4, 0, "transformer/"));
  variables["transformer/layer_normalization_8/gamma"] =
      golden.layer(0, "ln1.g");
  EXPECT_THAT(
      PlanOf("remi", TensorFlowCheckpoint(variables)).status().message(),
      HasSubstr("holds 9 of layer_normalization"));
}

TEST(RemiTest, ANumberThatIsNotOfItsLayerIsRefused) {
  std::vector<std::string> norms = ScopedNorms(4, 0);
  norms[1] = "transformer/layer_0/ff/layer_normalization_2";
  norms[2] = "transformer/layer_1/rel_attn/layer_normalization_1";
  const NativeCheckpoint checkpoint =
      TensorFlowCheckpoint(WithNorms(RemiGolden(), norms));
  EXPECT_THAT(PlanOf("remi", checkpoint).status().message(),
              HasSubstr("transformer/layer_1/rel_attn/layer_normalization_1"));
}

TEST(RemiTest, EachVariableIsChecked) {
  ExpectEachTensorIsChecked("remi", TensorFlowCheckpoint(WithNorms(
                                        RemiGolden(), FlatNorms(4, 0, ""))));
}

}  // namespace
}  // namespace txl
