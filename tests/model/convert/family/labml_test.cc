// labml's model: both of its containers, its tables of distances.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/model/convert/family/golden_weights.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Checkpoints as the library wrote them: a torch file, and in old runs a file
// per tensor.
constexpr const char* kContainers[] = {
    "labml-char/native/checkpoints/0000040000",
    "labml-char/native/checkpoints/0000040000/model.pth",
    "labml-char/native/checkpoints_npy/0000040000"};

class LabmlContainerTest : public testing::TestWithParam<const char*> {};

TEST_P(LabmlContainerTest, GivesTheGoldenWeightsAndConfig) {
  const auto checkpoint = OpenCheckpoint(GoldenFile(GetParam()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const GoldenWeights golden = LoadGolden("labml-char");
  const auto plan = PlanOf("labml", *checkpoint, golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

INSTANTIATE_TEST_SUITE_P(AllOfThem, LabmlContainerTest,
                         testing::ValuesIn(kContainers));

// A model with tables of 2 * `distances` rows, whose number is their row.
std::map<std::string, Values> StateDictOf(int64_t distances) {
  const auto numbers = [](std::vector<int64_t> shape) {
    Values values = {shape, {}};
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    const int64_t row = count / shape[0];
    for (int64_t i = 0; i < count; ++i) values.data.push_back(i / row);
    return values;
  };
  std::map<std::string, Values> out;
  out["src_embed.weight"] = numbers({5, 6});
  out["generator.weight"] = numbers({5, 6});
  out["generator.bias"] = numbers({5});
  for (const char* norm :
       {"norm", "layers.0.norm_self_attn", "layers.0.norm_ff"}) {
    out[absl::StrCat("transformer.", norm, ".weight")] = numbers({6});
    out[absl::StrCat("transformer.", norm, ".bias")] = numbers({6});
  }
  const std::string attention = "transformer.layers.0.self_attn.";
  out[attention + "query.linear.weight"] = numbers({6, 6});
  out[attention + "key.linear.weight"] = numbers({6, 6});
  out[attention + "value.linear.weight"] = numbers({6, 6});
  out[attention + "value.linear.bias"] = numbers({6});
  out[attention + "output.weight"] = numbers({6, 6});
  out[attention + "output.bias"] = numbers({6});
  out[attention + "query_pos_bias"] = numbers({2, 3});
  out[attention + "key_pos_embeddings"] = numbers({2 * distances, 2, 3});
  out[attention + "key_pos_bias"] = numbers({2 * distances, 2});
  const std::string ff = "transformer.layers.0.feed_forward.";
  out[ff + "layer1.weight"] = numbers({7, 6});
  out[ff + "layer1.bias"] = numbers({7});
  out[ff + "layer2.weight"] = numbers({6, 7});
  out[ff + "layer2.bias"] = numbers({6});
  return out;
}

TEST(LabmlTest, RowPMinusKOfTwoPIsDistanceK) {
  const auto plan = PlanOf("labml", Checkpoint(StateDictOf(4)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Values scalars = PlannedValues(plan->tensors.at("layer.0.rel_s"));
  EXPECT_THAT(scalars.shape, ElementsAre(5, 2));
  EXPECT_THAT(scalars.data, ElementsAre(4, 4, 3, 3, 2, 2, 1, 1, 0, 0));
  const Values vectors = PlannedValues(plan->tensors.at("layer.0.rel_t"));
  EXPECT_THAT(vectors.shape, ElementsAre(5, 2, 3));
  EXPECT_EQ(vectors.data.front(), 4);
  EXPECT_EQ(vectors.data.back(), 0);
}

TEST(LabmlTest, MemoryIsThatOfItsExperimentWhereNobodySays) {
  const auto plan = PlanOf("labml", Checkpoint(StateDictOf(4)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_len, 32);
  EXPECT_EQ(plan->config.window, std::nullopt);
  EXPECT_THAT(plan->oddities, ElementsAre(HasSubstr("mem_len")));
}

TEST(LabmlTest, TablesOfAnOddNumberOfRowsAreRefused) {
  auto tensors = StateDictOf(4);
  const std::string attention = "transformer.layers.0.self_attn.";
  for (const char* table : {"key_pos_embeddings", "key_pos_bias"}) {
    tensors[attention + table] = RowsOf(tensors[attention + table], 0, 7);
  }
  const auto plan = PlanOf("labml", Checkpoint(tensors));
  EXPECT_THAT(plan.status().message(), HasSubstr("key_pos_embeddings has 7"));
}

TEST(LabmlTest, ABiasThatThisModelHasNotIsRefused) {
  auto tensors = StateDictOf(4);
  const std::string extra = "transformer.layers.0.self_attn.query.linear.bias";
  tensors[extra] = {{6}, std::vector<float>(6)};
  const auto plan = PlanOf("labml", Checkpoint(tensors));
  EXPECT_THAT(plan.status().message(), HasSubstr(extra));
}

TEST(LabmlTest, EachTensorIsChecked) {
  ExpectEachTensorIsChecked("labml", Checkpoint(StateDictOf(4)));
}

}  // namespace
}  // namespace txl
