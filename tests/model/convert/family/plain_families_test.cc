// Families with kimiyoung's arithmetic and one plain softmax: compound-word and
// the article on Penn Treebank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/convert/family/family.h"
#include "tests/model/convert/family/kpt_tensors.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

TensorMap CompoundWordTensors() {
  TensorMap tensors = KptTrunkTensors({}, "state_dict.");
  tensors["state_dict.word_emb.lut.weight"] = CountingTensor({6, 4}, 100);
  tensors["state_dict.linear_proj.weight"] = CountingTensor({6, 4}, 200);
  tensors["state_dict.linear_proj.bias"] = CountingTensor({6}, 300);
  return tensors;
}

NativeCheckpoint CompoundWord(const json& setting) {
  NativeCheckpoint checkpoint = StateDict(CompoundWordTensors());
  checkpoint.data = {{"epoch", 170}, {"model_setting", setting}};
  return checkpoint;
}

TEST(CompoundWordTest, ItsSettingSaysWhatTheWeightsDoNot) {
  const NativeCheckpoint checkpoint = CompoundWord({{"mem_len", 9},
                                                    {"pre_lnorm", true},
                                                    {"same_length", true},
                                                    {"clamp_len", -1},
                                                    {"ext_len", 0}});
  const auto plan = PlanCompoundWord({checkpoint, json(), json()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->family, "compound-word");
  EXPECT_EQ(plan->config.mem_len, 9);
  EXPECT_EQ(plan->config.window, 9);
  EXPECT_EQ(plan->config.norm, NormPlacement::kPre);
  EXPECT_FALSE(plan->config.final_norm);
  EXPECT_EQ(plan->config.vocab_size, 6);
}

TEST(CompoundWordTest, TheOutputIsUntied) {
  const NativeCheckpoint checkpoint = CompoundWord(json::object());
  const auto plan = PlanCompoundWord({checkpoint, json(), json()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->config.tie_weight);
  EXPECT_EQ(ValuesOf(*plan, "emb.0.w")[0], 100);
  EXPECT_EQ(ValuesOf(*plan, "head.0.w")[0], 200);
  EXPECT_EQ(ValuesOf(*plan, "head.0.b")[5], 305);
}

TEST(CompoundWordTest, WithoutItsSettingTheReleasedModelsHolds) {
  const NativeCheckpoint checkpoint = CompoundWord(json::object());
  const auto plan = PlanCompoundWord({checkpoint, json(), json()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_len, 512);
  EXPECT_EQ(plan->config.window, 512);
  EXPECT_EQ(plan->config.norm, NormPlacement::kPre);
  EXPECT_THAT(plan->oddities, Contains(HasSubstr("no model_setting")));
}

TEST(CompoundWordTest, AnEmbeddingOfAnotherWidthIsRefused) {
  NativeCheckpoint checkpoint = CompoundWord(json::object());
  checkpoint.tensors["state_dict.word_emb.lut.weight"] = CountingTensor({6, 3});
  const auto plan = PlanCompoundWord({checkpoint, json(), json()});
  EXPECT_THAT(plan.status().message(),
              HasSubstr("word_emb.lut.weight has shape [6, 3]"));
}

// Layers as the article names them: H 2, D 3, d 4, F 5, V 6.
TensorMap ArticleTensors() {
  TensorMap tensors;
  tensors["u"] = CountingTensor({2, 3}, 10);
  tensors["v"] = CountingTensor({2, 3}, 20);
  tensors["pos_embs.inv_freq"] = CountingTensor({2}, 30);
  tensors["word_embs.embedding.weight"] = CountingTensor({6, 4}, 40);
  tensors["output_projection.weight"] = tensors["word_embs.embedding.weight"];
  tensors["output_projection.bias"] = CountingTensor({6}, 80);
  tensors["layers.0.mha.linear_q.weight"] = CountingTensor({6, 4}, 100);
  tensors["layers.0.mha.linear_kv.weight"] = CountingTensor({12, 4}, 200);
  tensors["layers.0.mha.linear_p.weight"] = CountingTensor({6, 4}, 300);
  tensors["layers.0.mha.lout.weight"] = CountingTensor({4, 6}, 400);
  tensors["layers.0.mha.norm.weight"] = CountingTensor({4}, 500);
  tensors["layers.0.mha.norm.bias"] = CountingTensor({4}, 510);
  tensors["layers.0.ff.ff.0.weight"] = CountingTensor({5, 4}, 600);
  tensors["layers.0.ff.ff.0.bias"] = CountingTensor({5}, 700);
  tensors["layers.0.ff.ff.3.weight"] = CountingTensor({4, 5}, 800);
  tensors["layers.0.ff.ff.3.bias"] = CountingTensor({4}, 900);
  tensors["layers.0.ff.layer_norm.weight"] = CountingTensor({4}, 950);
  tensors["layers.0.ff.layer_norm.bias"] = CountingTensor({4}, 960);
  return tensors;
}

TEST(PtbArticleTest, EveryTensorFindsItsPlace) {
  const NativeCheckpoint checkpoint = StateDict(ArticleTensors());
  const auto plan = PlanPtbArticle({checkpoint, json(), json()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::map<std::string, float> first = {
      {"layer.0.u", 10},      {"layer.0.v", 20},      {"pos.inv_freq", 30},
      {"emb.0.w", 40},        {"head.0.b", 80},       {"layer.0.wq", 100},
      {"layer.0.wk", 200},    {"layer.0.wv", 224},    {"layer.0.wr", 300},
      {"layer.0.wo", 400},    {"layer.0.ln1.g", 500}, {"layer.0.ln1.b", 510},
      {"layer.0.ff.w1", 600}, {"layer.0.ff.b1", 700}, {"layer.0.ff.w2", 800},
      {"layer.0.ff.b2", 900}, {"layer.0.ln2.g", 950}, {"layer.0.ln2.b", 960}};
  for (const auto& [name, value] : first) {
    EXPECT_EQ(ValuesOf(*plan, name)[0], value) << name;
  }
  EXPECT_EQ(plan->tensors.size(), first.size());
  EXPECT_TRUE(plan->config.tie_weight);
}

TEST(PtbArticleTest, ItsChoicesAreTheArticles) {
  const NativeCheckpoint checkpoint = StateDict(ArticleTensors());
  const auto plan = PlanPtbArticle({checkpoint, json(), {{"mem_len", 5}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.norm, NormPlacement::kPost);
  EXPECT_FALSE(plan->config.window.has_value());
  EXPECT_TRUE(plan->config.scale_embedding);
  EXPECT_EQ(plan->config.mem_len, 5);
  EXPECT_EQ(plan->config.n_head, 2);
  EXPECT_EQ(plan->config.d_head, 3);
}

TEST(PtbArticleTest, EveryMissingTensorIsNamed) {
  const TensorMap whole = ArticleTensors();
  for (const auto& [name, tensor] : whole) {
    if (name == "pos_embs.inv_freq") continue;         // may be absent
    if (name == "output_projection.weight") continue;  // taken as tied
    TensorMap tensors = whole;
    tensors.erase(name);
    const NativeCheckpoint checkpoint = StateDict(tensors);
    EXPECT_THAT(PlanPtbArticle({checkpoint, json(), json()}).status().message(),
                HasSubstr(name + " is missing"));
  }
}

}  // namespace
}  // namespace txl
