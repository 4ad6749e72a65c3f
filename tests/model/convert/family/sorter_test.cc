// The sorter of digits: its own file, and what it says and does not say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/model/convert/family/golden_weights.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

NativeCheckpoint OwnFile() {
  const auto checkpoint = OpenCheckpoint(GoldenFile("sorter/native/model.pt"));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.value_or(NativeCheckpoint{});
}

// As SortDigits' state dict, without a configuration.
std::map<std::string, Values> SorterState(const GoldenWeights& golden) {
  std::map<std::string, Values> out;
  out["embed.weight"] = golden.at("emb.0.w");
  out["out_layer.weight"] = golden.at("head.0.w");
  out["out_layer.bias"] = golden.at("head.0.b");
  for (int64_t l = 0; l < golden.layers(); ++l) {
    const std::string layer = absl::StrCat("layers.", l, ".");
    const auto put = [&](const std::string& native, const char* name) {
      out[layer + native] = golden.layer(l, name);
    };
    const int64_t heads = golden.layer(l, "u").shape[0];
    const int64_t d_head = golden.layer(l, "u").shape[1];
    out[layer + "attn.u"] =
        Reshaped(golden.layer(l, "u"), {1, heads, 1, d_head});
    out[layer + "attn.t"] =
        Reshaped(golden.layer(l, "v"), {1, heads, 1, d_head});
    put("attn.w_q.weight", "wq");
    put("attn.w_k.weight", "wk");
    put("attn.w_v.weight", "wv");
    put("attn.w_r.weight", "wr");
    put("attn.mlp.weight", "wo");
    put("attn.layer_norm.weight", "ln1.g");
    put("attn.layer_norm.bias", "ln1.b");
    put("pos_ff.net.0.weight", "ff.w1");
    put("pos_ff.net.0.bias", "ff.b1");
    put("pos_ff.net.3.weight", "ff.w2");
    put("pos_ff.net.3.bias", "ff.b2");
    put("pos_ff.layer_norm.weight", "ln2.g");
    put("pos_ff.layer_norm.bias", "ln2.b");
  }
  return out;
}

TEST(SorterTest, ItsFileGivesTheGoldenWeightsAndConfig) {
  const NativeCheckpoint checkpoint = OwnFile();
  const GoldenWeights golden = LoadGolden("sorter");
  const auto plan = PlanOf("sorter", checkpoint, golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
  EXPECT_EQ(plan->fields.at("mem_len").origin, FieldOrigin::kSpec);
  EXPECT_EQ(plan->fields.at("n_head").origin, FieldOrigin::kWeights);
}

TEST(SorterTest, MemoryThatItsTrainingDidWithoutIsThatOfItsEvaluation) {
  const NativeCheckpoint checkpoint = OwnFile();
  const auto plan = PlanOf("sorter", checkpoint);
  ASSERT_TRUE(plan.ok()) << plan.status();
  // config.Config says mem_len 0 and seg_len 39.
  EXPECT_EQ(plan->config.mem_len, 39);
  EXPECT_EQ(plan->fields.at("mem_len").origin, FieldOrigin::kFamily);
  EXPECT_THAT(plan->oddities, ElementsAre(HasSubstr("seg_len")));
}

TEST(SorterTest, MemoryInItsConfigurationIsTaken) {
  NativeCheckpoint checkpoint = OwnFile();
  checkpoint.data["config"]["mem_len"] = 17;
  const auto plan = PlanOf("sorter", checkpoint);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_len, 17);
  EXPECT_EQ(plan->fields.at("mem_len").origin, FieldOrigin::kCheckpoint);
}

TEST(SorterTest, ABareStateDictWillDo) {
  const GoldenWeights golden = LoadGolden("sorter");
  const auto plan =
      PlanOf("sorter", Checkpoint(SorterState(golden)), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

TEST(SorterTest, ASpecThatContradictsTheWeightsIsRefused) {
  const GoldenWeights golden = LoadGolden("sorter");
  const auto plan = PlanOf("sorter", Checkpoint(SorterState(golden)),
                           json{{"n_head", 3}, {"mem_len", 5}});
  EXPECT_THAT(plan.status().message(), HasSubstr("n_head"));
}

TEST(SorterTest, AMisshapedBiasIsNamed) {
  auto tensors = SorterState(LoadGolden("sorter"));
  tensors["layers.1.attn.t"].shape = {4, 9};
  const auto plan = PlanOf("sorter", Checkpoint(tensors));
  EXPECT_THAT(plan.status().message(), HasSubstr("layers.1.attn.t"));
}

TEST(SorterTest, EachTensorIsChecked) {
  ExpectEachTensorIsChecked("sorter",
                            Checkpoint(SorterState(LoadGolden("sorter"))));
}

}  // namespace
}  // namespace txl
