#include "model/tool/serving_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/golden_paths.h"
#include "tests/model/tool/fake_step.h"
#include "tests/model/torch/golden_case.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(RowsPerStreamTest, IsASegmentUnlessAllStreamsTogetherAreTooMany) {
  EXPECT_EQ(RowsPerStream({1, 7}), 7);
  EXPECT_EQ(RowsPerStream({8, 32}), 32);
  EXPECT_EQ(RowsPerStream({8, 10000}), 512 / 8);
  EXPECT_EQ(RowsPerStream({100000, 128}), 1);
}

// Words 0..3, clusters {4, 5} and {6, 7, 8}.
const VocabularyBins kBins{{4, 6, 9}};
const std::vector<int64_t> kText = {0, 4, 8, 1, 5, 6, 2, 7, 3, 0, 4};

Evaluation EvaluateFake(FakeStep& step, StreamCut cut) {
  EvaluationOptions options;
  options.shape = {3, 3};
  options.cut = cut;
  return EvaluateStep(step, kText, options, 2);
}

TEST(EvaluateStepTest, EveryTargetCountsOnceAndPaddingIsNotFed) {
  FakeStep step(kBins);
  const Evaluation result = EvaluateFake(step, StreamCut::kWhole);
  EXPECT_EQ(result.tokens, 10);
  // The targets are all of the text but its first token; log P = -(id + 1).
  EXPECT_DOUBLE_EQ(result.nats, (40 + 10) / 10.0);
  // Streams of four targets; the last has two. Segments of 3, steps of 2.
  EXPECT_THAT(step.record().runs, ElementsAre("0@0:0,4 1@0:5,6 2@0:3,0",
                                              "0@2:8 1@2:2", "0@3:1 1@3:7"));
  EXPECT_THAT(step.record().cleared, ElementsAre(0, 1, 2));
}

TEST(EvaluateStepTest, OriginalStreamsShareNoToken) {
  FakeStep step(kBins);
  // Streams of three tokens, so of two targets: 4 8, 5 6, 7 3.
  const Evaluation result = EvaluateFake(step, StreamCut::kOriginal);
  EXPECT_EQ(result.tokens, 6);
  EXPECT_DOUBLE_EQ(result.nats, (5 + 9 + 6 + 7 + 8 + 4) / 6.0);
  EXPECT_THAT(step.record().runs, ElementsAre("0@0:0,4 1@0:1,5 2@0:2,7"));
}

TEST(EvaluateStepTest, OnlyTheTargetsClustersAreEvaluatedAndAllAtOnce) {
  FakeStep step(kBins);
  EvaluateFake(step, StreamCut::kOriginal);
  // Rows in order of the streams: 4 8, 5 6, 7 3.
  EXPECT_THAT(step.record().clusters,
              ElementsAre(Pair(0, 0u), Pair(1, 1u), Pair(2, 0u), Pair(3, 1u),
                          Pair(4, 1u)));
  EXPECT_EQ(step.record().unannounced, 0);
}

TEST(EvaluateStepTest, ATextOfOneTokenHasNothingToEvaluate) {
  FakeStep step(kBins);
  const Evaluation result = EvaluateStep(step, {{3}}, {}, 1);
  EXPECT_EQ(result.tokens, 0);
  EXPECT_THAT(step.record().runs, IsEmpty());
}

TEST(EvaluateStepTest, TheObserverSeesTheShareAndCanEnd) {
  FakeStep step(kBins);
  EvaluationOptions options;
  options.shape = {1, 3};
  std::vector<double> shares;
  options.observer = [&](const Evaluation& so_far, double share) {
    EXPECT_EQ(so_far.tokens, static_cast<int64_t>(3 * (shares.size() + 1)));
    shares.push_back(share);
    return shares.size() < 2;
  };
  EXPECT_EQ(EvaluateStep(step, kText, options, 3).tokens, 6);
  EXPECT_THAT(shares, ElementsAre(0.25, 0.5));
}

std::vector<int64_t> Ids(const GoldenCase& golden) {
  return {golden.tokens.begin(), golden.tokens.end()};
}

double Nats(const GoldenCase& golden, StreamShape shape, int threads = 1) {
  ServingStepOptions options;
  options.shape = shape;
  options.threads = threads;
  auto step = CreateServingStep(golden.config, golden.weights, options);
  EXPECT_TRUE(step.ok()) << step.status();
  EvaluationOptions evaluation;
  evaluation.shape = shape;
  return EvaluateStep(**step, Ids(golden), evaluation, RowsPerStream(shape))
      .nats;
}

class ServingEvaluationTest : public testing::TestWithParam<std::string> {};

// Mean of what the original code says of each next token, fed one by one.
double OriginalNats(const GoldenCase& golden) {
  double sum = 0;
  const auto rows = golden.stepwise.accessor<double, 2>();
  const size_t targets = golden.tokens.size() - 1;
  for (size_t i = 0; i < targets; ++i) sum -= rows[i][golden.tokens[i + 1]];
  return sum / static_cast<double>(targets);
}

TEST_P(ServingEvaluationTest, IsTheOriginalCodesFigureTokenByTokenInAnyCuts) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
  const double expected = OriginalNats(golden);
  for (const int64_t segment : {1, 7, 1000}) {
    EXPECT_NEAR(Nats(golden, {1, segment}), expected, golden.tolerance);
  }
}

TEST_P(ServingEvaluationTest, CutsAndThreadsChangeNothing) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
  // The same numbers, added in another order.
  const double nats = Nats(golden, {3, 5});
  EXPECT_NEAR(Nats(golden, {3, 1}), nats, 1e-12);
  EXPECT_NEAR(Nats(golden, {3, 64}, 2), nats, 1e-12);
}

TEST_P(ServingEvaluationTest, LibTorchServesOtherTypes) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kDouble);
  // Its distributions leave as float32.
  EXPECT_NEAR(Nats(golden, {1, 9}), OriginalNats(golden), 1e-6);
}

// The model's own window is the served one: what a call holds does not matter.
bool HasUniformWindow(const ModelConfig& config) {
  return config.window.has_value() && *config.window <= config.mem_len + 1;
}

std::vector<std::string> UniformCases() {
  std::vector<std::string> names;
  for (const std::string& name : GoldenCaseNames()) {
    const GoldenCase golden = LoadGoldenCase(name, at::kFloat);
    if (HasUniformWindow(golden.config)) names.push_back(name);
  }
  return names;
}

TEST(ServingEvaluation, EqualsTheReferenceWhereWindowsAreUniform) {
  ASSERT_GE(UniformCases().size(), 4u);
  for (const std::string& name : UniformCases()) {
    const GoldenCase golden = LoadGoldenCase(name, at::kFloat);
    const ReferenceNetwork network(golden.config, golden.weights);
    EvaluationOptions options;
    for (const StreamShape shape : {StreamShape{1, 16}, {4, 9}, {8, 128}}) {
      options.shape = shape;
      EXPECT_NEAR(Nats(golden, shape),
                  Evaluate(network, Ids(golden), options).nats, 2e-5)
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, ServingEvaluationTest,
                         testing::ValuesIn(GoldenCaseNames()),
                         [](const auto& param) {
                           return GoldenParamName(param.param);
                         });

TEST(CreateServingStepTest, ItsFormatsAreThoseOfTheStep) {
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  ServingStepOptions options;
  options.formats.memory = NumberFormat::kBF16;
  EXPECT_EQ((*CreateServingStep(golden.config, golden.weights, options))
                ->identity()
                .row_dtype,
            "bf16");
  options.formats.products = Products::kInteger;  // of float32 weights
  EXPECT_EQ(
      CreateServingStep(golden.config, golden.weights, options).status().code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace txl
