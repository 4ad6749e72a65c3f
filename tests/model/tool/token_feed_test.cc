#include "model/tool/token_feed.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorFile FileOf(std::vector<int64_t> tokens, std::vector<int64_t> segments) {
  TensorFile file;
  file.tensors["tokens"] = at::tensor(tokens, at::kLong);
  file.tensors["segments"] = at::tensor(segments, at::kLong);
  return file;
}

TEST(TokenFeedTest, CutsAreTheFilesSegmentsOrSingleTokens) {
  const TensorFile file = FileOf({4, 0, 2}, {2, 1});
  const auto segments = MakeTokenFeed(file, 5, true, "f");
  ASSERT_TRUE(segments.ok()) << segments.status();
  EXPECT_THAT(segments->tokens, ElementsAre(4, 0, 2));
  EXPECT_THAT(segments->cuts, ElementsAre(2, 1));
  EXPECT_THAT(MakeTokenFeed(file, 5, false, "f")->cuts, ElementsAre(1, 1, 1));
}

TEST(TokenFeedTest, StepwiseNeedsNoSegments) {
  TensorFile file = FileOf({1}, {1});
  file.tensors.erase("segments");
  EXPECT_TRUE(MakeTokenFeed(file, 5, false, "f").ok());
  EXPECT_THAT(MakeTokenFeed(file, 5, true, "f").status().message(),
              HasSubstr("f: tensor segments is missing"));
}

TEST(TokenFeedTest, IdsOutsideTheVocabularyAreNamed) {
  EXPECT_THAT(
      MakeTokenFeed(FileOf({1, 5}, {2}), 5, true, "f").status().message(),
      HasSubstr("id 5 is outside the vocabulary of 5"));
  EXPECT_FALSE(MakeTokenFeed(FileOf({-1}, {1}), 5, true, "f").ok());
}

TEST(TokenFeedTest, SegmentsMustBePositiveAndSumToTheText) {
  for (const std::vector<int64_t>& segments :
       {std::vector<int64_t>{1, 1}, {4}, {3, 0}, {5, -2}}) {
    EXPECT_FALSE(MakeTokenFeed(FileOf({1, 2, 3}, segments), 5, true, "f").ok());
  }
}

TEST(TokenFeedTest, OtherTypesAndShapesAreRefused) {
  TensorFile file = FileOf({1}, {1});
  file.tensors["tokens"] = at::zeros({1}, at::kFloat);
  EXPECT_FALSE(MakeTokenFeed(file, 5, true, "f").ok());
  file.tensors["tokens"] = at::zeros({1, 1}, at::kLong);
  EXPECT_FALSE(MakeTokenFeed(file, 5, true, "f").ok());
  file.tensors["tokens"] = at::zeros({0}, at::kLong);
  EXPECT_FALSE(MakeTokenFeed(file, 5, true, "f").ok());
}

}  // namespace
}  // namespace txl
