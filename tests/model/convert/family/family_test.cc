// Which family a checkpoint is of.
#include "model/convert/family/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/model/convert/family/kpt_tensors.h"

namespace txl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

NativeCheckpoint WithNames(const std::vector<std::string>& names) {
  TensorMap tensors;
  for (const std::string& name : names) tensors[name] = CountingTensor({1});
  return StateDict(std::move(tensors));
}

std::string Chosen(const std::vector<std::string>& names) {
  const NativeCheckpoint checkpoint = WithNames(names);
  const auto family = ChooseFamily("auto", checkpoint);
  return family.ok() ? std::string((*family)->id)
                     : std::string(family.status().message());
}

TEST(FamilyTest, IsRecognisedByItsSignature) {
  EXPECT_EQ(Chosen({"word_emb.emb_layers.0.weight", "crit.out_layers.0.bias",
                    "layers.0.dec_attn.r_net.weight"}),
            "kimiyoung");
  EXPECT_EQ(Chosen({"model_state.word_emb.emb_layers.0.weight",
                    "model_state.crit.out_layers.0.bias"}),
            "kimiyoung");
  EXPECT_EQ(Chosen({"transformer.word_emb.emb_layers.0.weight",
                    "crit.out_layers.0.bias"}),
            "huggingface");
  EXPECT_EQ(
      Chosen({"word_emb.emb_layers.0.weight", "layers.0.dec_attn.r_w_bias"}),
      "huggingface");  // a base model
  EXPECT_EQ(Chosen({"model_state.word_emb.emb_layers.0.weight",
                    "model_state.crit.out_layers_biases.0"}),
            "nvidia");
  EXPECT_EQ(
      Chosen({"word_embs.embedding.weight", "layers.0.mha.linear_kv.weight"}),
      "ptb-article");
  EXPECT_EQ(Chosen({"state_dict.word_emb.lut.weight"}), "compound-word");
}

TEST(FamilyTest, WhatIsUnknownSaysWhatWasFound) {
  EXPECT_THAT(
      Chosen({"bert.embeddings.weight"}),
      AllOf(HasSubstr("in_memory.pt"), HasSubstr("no known family"),
            HasSubstr("bert.embeddings.weight"), HasSubstr("kimiyoung")));
  EXPECT_THAT(Chosen({}), HasSubstr("no tensor"));
}

TEST(FamilyTest, AModelDirectorysTensorsNeedNoConversion) {
  EXPECT_THAT(Chosen({"emb.0.w", "final.g"}),
              AllOf(HasSubstr("in_memory.pt"), HasSubstr("model directory"),
                    Not(HasSubstr("--format"))));
}

TEST(FamilyTest, AMixtureIsAskedAbout) {
  EXPECT_THAT(Chosen({"word_embs.embedding.weight", "x.word_emb.lut.weight"}),
              AllOf(HasSubstr("ptb-article"), HasSubstr("compound-word"),
                    HasSubstr("--format")));
}

TEST(FamilyTest, AFormatIsTakenAtItsWord) {
  const NativeCheckpoint checkpoint = WithNames({"anything"});
  for (const Family& family : Families()) {
    const auto chosen = ChooseFamily(family.id, checkpoint);
    ASSERT_TRUE(chosen.ok()) << family.id;
    EXPECT_EQ((*chosen)->id, family.id);
  }
  EXPECT_THAT(ChooseFamily("tex", checkpoint).status().message(),
              AllOf(HasSubstr("--format tex"), HasSubstr("auto")));
}

TEST(FamilyTest, IdsAreDistinct) {
  std::set<absl::string_view> ids;
  for (const Family& family : Families()) {
    EXPECT_TRUE(ids.insert(family.id).second) << family.id;
    EXPECT_FALSE(family.about.empty());
  }
}

TEST(PlannedTensorTest, PiecesAddUpAlongTheirAxis) {
  PlannedTensor tensor;
  tensor.pieces = {CountingTensor({2, 3}), CountingTensor({4, 3})};
  EXPECT_THAT(tensor.shape(), testing::ElementsAre(6, 3));
  tensor.pieces = {CountingTensor({2, 3}), CountingTensor({2, 5})};
  tensor.axis = 1;
  EXPECT_THAT(tensor.shape(), testing::ElementsAre(2, 8));
}

TEST(FieldOriginTest, HasANameForPeople) {
  EXPECT_EQ(FieldOriginName(FieldOrigin::kWeights), "weights");
  EXPECT_EQ(FieldOriginName(FieldOrigin::kSpec), "spec");
  EXPECT_EQ(FieldOriginName(FieldOrigin::kCheckpoint), "checkpoint");
  EXPECT_EQ(FieldOriginName(FieldOrigin::kFamily), "family default");
}

}  // namespace

}  // namespace txl
