#include "model/sampling/adjustments.h"

#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/sampling/sampling_oracle.h"

namespace txl {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

std::vector<double> Adjusted(const SamplingParams& params,
                             const std::vector<int32_t>& recent_ids,
                             std::vector<double> logprobs) {
  ApplyBiasAndPenalties(params, recent_ids, absl::MakeSpan(logprobs));
  return logprobs;
}

TEST(Adjustments, NothingHappensAtTheDefaults) {
  EXPECT_THAT(Adjusted(SamplingParams(), {0, 1, 1}, {-1, -2, kForbidden}),
              ElementsAre(-1, -2, kForbidden));
}

TEST(Adjustments, TheWindowAloneAdjustsNothing) {
  SamplingParams params;
  params.penalty_window = 10;
  params.top_k = 3;
  EXPECT_FALSE(HasAdjustments(params));
  params.logit_bias[1] = 0.5;
  EXPECT_TRUE(HasAdjustments(params));
  EXPECT_FALSE(HasPenalties(params));
  params.frequency_penalty = 0.5;
  EXPECT_TRUE(HasPenalties(params));
}

TEST(Adjustments, BiasIsAdded) {
  SamplingParams params;
  params.logit_bias = {{0, 3}, {2, -100}};
  EXPECT_THAT(Adjusted(params, {}, {-1, -2, -3}), ElementsAre(2, -2, -103));
}

TEST(Adjustments, RepetitionMultipliesANegativeLogprobOnceForEachId) {
  SamplingParams params;
  params.repetition_penalty = 1.5;
  EXPECT_THAT(Adjusted(params, {1, 1, 1}, {-1, -2, 0}), ElementsAre(-1, -3, 0));
}

TEST(Adjustments, RepetitionDividesWhatABiasMadePositive) {
  SamplingParams params;
  params.repetition_penalty = 2;
  params.logit_bias = {{0, 5}};
  EXPECT_THAT(Adjusted(params, {0}, {-1, -2}), ElementsAre(2, -2));
}

TEST(Adjustments, WhatABiasMadePositiveStaysFinite) {
  SamplingParams params;
  params.repetition_penalty = 1e-308;
  params.logit_bias = {{0, 100}};
  EXPECT_THAT(Adjusted(params, {0, 1}, {-1, -2}),
              ElementsAre(kMostAdjustedLogprob, DoubleEq(-2e-308)));
}

TEST(Adjustments, PresenceCountsOnceAndFrequencyEveryTime) {
  SamplingParams params;
  params.presence_penalty = 0.5;
  EXPECT_THAT(Adjusted(params, {0, 2, 0}, {-1, -2, -3}),
              ElementsAre(-1.5, -2, -3.5));
  params.presence_penalty = 0;
  params.frequency_penalty = 0.5;
  EXPECT_THAT(Adjusted(params, {0, 2, 0}, {-1, -2, -3}),
              ElementsAre(-2, -2, -3.5));
}

TEST(Adjustments, PenaltiesComeAfterBiasRepetitionFirst) {
  SamplingParams params;
  params.logit_bias = {{0, -1}};
  params.repetition_penalty = 2;
  params.presence_penalty = 0.25;
  params.frequency_penalty = 0.125;
  EXPECT_THAT(Adjusted(params, {0, 0}, {-1}),
              ElementsAre((-1.0 - 1.0) * 2 - 0.25 - 2 * 0.125));
}

TEST(Adjustments, TheWindowIsTheLastIds) {
  SamplingParams params;
  params.presence_penalty = 1;
  params.penalty_window = 2;
  EXPECT_THAT(Adjusted(params, {0, 1, 2}, {-1, -1, -1}),
              ElementsAre(-1, -2, -2));
  params.penalty_window = 100;
  EXPECT_THAT(Adjusted(params, {0, 1}, {-1, -1, -1}), ElementsAre(-2, -2, -1));
  params.penalty_window = 0;
  EXPECT_THAT(Adjusted(params, {0, 1}, {-1, -1, -1}), ElementsAre(-1, -1, -1));
}

TEST(Adjustments, AnImpossibleTokenStaysImpossible) {
  SamplingParams params;
  params.logit_bias = {{0, 100}};
  params.repetition_penalty = 0.5;
  params.presence_penalty = -2;
  EXPECT_THAT(Adjusted(params, {0}, {kForbidden, -1}),
              ElementsAre(kForbidden, -1));
}

TEST(Adjustments, IdsOutsideTheVocabularyHaveNoEffect) {
  SamplingParams params;
  params.presence_penalty = 1;
  params.logit_bias = {{-1, 5}, {2, 5}};
  EXPECT_THAT(Adjusted(params, {-1, 2, 1 << 30}, {-1, -2}),
              ElementsAre(-1, -2));
  std::vector<double> logprobs = {-1, -2};
  ApplyBans({-1, 2, 1 << 30}, absl::MakeSpan(logprobs));
  EXPECT_THAT(logprobs, ElementsAre(-1, -2));
}

TEST(Adjustments, BannedIdsBecomeImpossible) {
  std::vector<double> logprobs = {-1, -2, -3};
  ApplyBans({2, 0, 2}, absl::MakeSpan(logprobs));
  EXPECT_THAT(logprobs, ElementsAre(kForbidden, -2, kForbidden));
}

TEST(Adjustments, EqualThePlainDefinitionOnRandomInput) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 500; ++i) {
    const std::vector<float> logprobs = RandomLogprobs(random, 20, 2);
    OracleContext context;
    context.recent_ids.resize(random() % 100);
    for (int32_t& id : context.recent_ids) id = random() % 20;
    SamplingParams params;
    params.repetition_penalty = 0.1 + 2 * unit(random);
    params.presence_penalty = 4 * unit(random) - 2;
    params.frequency_penalty = 4 * unit(random) - 2;
    params.penalty_window = random() % 80;
    params.logit_bias[random() % 20] = 20 * unit(random) - 10;
    const std::vector<double> expected =
        OracleAdjusted(logprobs, params, context);
    const std::vector<double> actual =
        Adjusted(params, context.recent_ids,
                 std::vector<double>(logprobs.begin(), logprobs.end()));
    for (size_t id = 0; id < expected.size(); ++id) {
      ASSERT_NEAR(actual[id], expected[id], 1e-12);
    }
  }
}

}  // namespace
}  // namespace txl
