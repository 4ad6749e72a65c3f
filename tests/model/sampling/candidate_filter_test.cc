#include "model/sampling/candidate_filter.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/sampling/sampling_oracle.h"

namespace txl {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

std::vector<Candidate> Candidates(const std::vector<double>& logprobs) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    candidates.push_back({static_cast<int32_t>(i), logprobs[i], 0});
  }
  return candidates;
}

std::vector<double> Logs(std::vector<double> probabilities) {
  for (double& p : probabilities) p = std::log(p);
  return probabilities;
}

std::vector<int32_t> KeptIds(const SamplingParams& params,
                             const std::vector<double>& logprobs) {
  std::vector<Candidate> candidates = Candidates(logprobs);
  FilterCandidates(params, candidates);
  std::vector<int32_t> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.id);
  return ids;
}

TEST(CandidateFilter, KeepsEverythingInOrderOfIdAtTheDefaults) {
  EXPECT_THAT(KeptIds(SamplingParams(), Logs({0.2, 0.5, 0.3})),
              ElementsAre(0, 1, 2));
}

TEST(CandidateFilter, WeightsAreRelativeToTheBestAndSharpenedByTemperature) {
  SamplingParams params;
  params.temperature = 0.5;
  std::vector<Candidate> candidates = Candidates(Logs({0.2, 0.5, 0.3}));
  FilterCandidates(params, candidates);
  EXPECT_NEAR(candidates[0].weight, 0.16, 1e-12);
  EXPECT_EQ(candidates[1].weight, 1);
  EXPECT_NEAR(candidates[2].weight, 0.36, 1e-12);
}

TEST(CandidateFilter, TopKKeepsTheBestOfEqualOnesTheLowerIds) {
  SamplingParams params;
  params.top_k = 2;
  EXPECT_THAT(KeptIds(params, Logs({0.2, 0.5, 0.3})), ElementsAre(1, 2));
  EXPECT_THAT(KeptIds(params, Logs({0.2, 0.2, 0.4, 0.2})), ElementsAre(0, 2));
  params.top_k = 3;
  EXPECT_THAT(KeptIds(params, Logs({0.2, 0.8})), ElementsAre(0, 1));
}

TEST(CandidateFilter, TopPKeepsTheTokenThatReachesTheMass) {
  SamplingParams params;
  const std::vector<double> logprobs = Logs({0.15, 0.5, 0.05, 0.3});
  params.top_p = 0.49;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(1));
  params.top_p = 0.51;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(1, 3));
  params.top_p = 0.81;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(0, 1, 3));
  params.top_p = 1e-300;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(1));
}

TEST(CandidateFilter, TopPIsOfWhatTopKLeft) {
  SamplingParams params;
  params.top_k = 2;
  params.top_p = 0.6;  // 0.5 of 0.8 is 0.625
  EXPECT_THAT(KeptIds(params, Logs({0.15, 0.5, 0.05, 0.3})), ElementsAre(1));
}

TEST(CandidateFilter, MinPIsRelativeToTheLargestProbability) {
  SamplingParams params;
  const std::vector<double> logprobs = Logs({0.15, 0.5, 0.05, 0.3});
  params.min_p = 0.2;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(0, 1, 3));
  params.min_p = 0.4;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(1, 3));
  params.min_p = 1;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(1));
  EXPECT_THAT(KeptIds(params, Logs({0.4, 0.2, 0.4})), ElementsAre(0, 2));
}

// H = 1.12 nats: -log p of 0.3 (1.20) is nearer to it than of 0.5 (0.69).
TEST(CandidateFilter, TypicalPPrefersTokensOfAverageSurprise) {
  SamplingParams params;
  const std::vector<double> logprobs = Logs({0.5, 0.3, 0.19, 0.01});
  params.typical_p = 0.29;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(1));
  params.typical_p = 0.31;
  EXPECT_THAT(KeptIds(params, logprobs), ElementsAre(0, 1));
}

TEST(CandidateFilter, NoFilterIsOnAtTheDefaults) {
  SamplingParams params;
  params.temperature = 0.5;
  params.presence_penalty = 1;
  EXPECT_FALSE(HasFilters(params));
  params.typical_p = 0.9;
  EXPECT_TRUE(HasFilters(params));
}

TEST(CandidateFilter, TopKOrMinPAloneHaveALowerBound) {
  SamplingParams params;
  EXPECT_FALSE(HasLowerBound(params));
  params.min_p = 0.1;
  EXPECT_TRUE(HasLowerBound(params));
  params.top_p = 0.5;
  EXPECT_FALSE(HasLowerBound(params));
  params.top_k = 3;
  EXPECT_TRUE(HasLowerBound(params));
}

// What is known may grow: the bound never excludes what the whole keeps.
TEST(CandidateFilter, NothingIsKeptBelowTheLowerBound) {
  const std::vector<double> logprobs = Logs({0.1, 0.05, 0.4, 0.3, 0.15});
  SamplingParams by_rank, by_share;
  by_rank.top_k = 2;
  by_share.min_p = 0.3;
  by_share.temperature = 0.7;
  for (const SamplingParams& params : {by_rank, by_share}) {
    std::vector<Candidate> kept = Candidates(logprobs);
    FilterCandidates(params, kept);
    std::vector<Candidate> known;
    EXPECT_EQ(LowerBound(params, known),
              -std::numeric_limits<double>::infinity());
    for (const Candidate& candidate : Candidates(logprobs)) {
      known.push_back(candidate);
      for (const Candidate& one : kept) {
        EXPECT_GE(one.logprob, LowerBound(params, known) - 1e-12);
      }
    }
  }
  EXPECT_NEAR(LowerBound(by_rank, Candidates(logprobs)), std::log(0.3), 1e-12);
  EXPECT_NEAR(LowerBound(by_share, Candidates(logprobs)),
              std::log(0.4) + 0.7 * std::log(0.3), 1e-12);
}

TEST(CandidateFilter, TheTinyTemperatureKeepsAFiniteDistribution) {
  SamplingParams params;
  params.temperature = 1e-300;
  params.top_p = 0.9;
  params.typical_p = 0.9;
  std::vector<Candidate> candidates = Candidates(Logs({0.2, 0.5, 0.3}));
  FilterCandidates(params, candidates);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].id, 1);
  EXPECT_EQ(candidates[0].weight, 1);
}

// The kept set and the probabilities against the plain definition.
void ExpectAsDefined(const std::vector<float>& logprobs,
                     const SamplingParams& params, const OracleContext& context,
                     double tolerance) {
  const std::vector<double> expected =
      OracleDistribution(logprobs, params, context);
  std::vector<Candidate> candidates =
      Candidates(OracleAdjusted(logprobs, params, context));
  FilterCandidates(params, candidates);
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  std::vector<double> actual(logprobs.size());
  for (const Candidate& candidate : candidates) {
    actual[candidate.id] = candidate.weight / total;
  }
  for (size_t id = 0; id < expected.size(); ++id) {
    ASSERT_EQ(actual[id] > 0, expected[id] > 0) << "kept set, id " << id;
    ASSERT_THAT(actual[id], DoubleNear(expected[id], tolerance));
  }
}

TEST(CandidateFilter, EqualsTheDefinitionForEveryPairOfParameters) {
  const std::vector<ParameterCase> cases = AllParameterCases();
  std::mt19937 random(2);
  for (size_t a = 0; a < cases.size(); ++a) {
    for (size_t b = a; b < cases.size(); ++b) {
      SCOPED_TRACE(absl::StrCat(cases[a].name, " and ", cases[b].name));
      SamplingParams params;
      cases[a].set(params);
      cases[b].set(params);
      for (int i = 0; i < 100; ++i) {
        const size_t size = 12 + random() % 60;
        OracleContext context;
        context.recent_ids.resize(random() % 10);
        for (int32_t& id : context.recent_ids) id = random() % size;
        const double spread = 0.3 * (1 + random() % 10);
        ExpectAsDefined(RandomLogprobs(random, size, spread), params, context,
                        1e-12);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(CandidateFilter, EqualsTheDefinitionForRandomParametersTogether) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 3000; ++i) {
    SamplingParams params;
    params.temperature = 0.2 + 2 * unit(random);
    if (random() % 2) params.top_k = random() % 20;
    if (random() % 2) params.top_p = 1 - unit(random);
    if (random() % 2) params.min_p = 0.3 * unit(random);
    if (random() % 2) params.typical_p = 1 - unit(random);
    ExpectAsDefined(RandomLogprobs(random, 1 + random() % 50, 2), params, {},
                    1e-12);
    if (HasFatalFailure()) return;
  }
}

// Long enough that runs are sorted in several blocks.
TEST(CandidateFilter, EqualsTheDefinitionForTheLargestVocabulary) {
  std::mt19937 random(4);
  const std::vector<float> logprobs = RandomLogprobs(random, 267735, 2);
  std::vector<SamplingParams> cases(8);
  cases[0].top_k = 40;
  cases[1].top_k = 5000;
  cases[2].top_p = 0.05;
  cases[3].top_p = 0.9;
  cases[4].top_p = 0.9999;
  cases[5].min_p = 1e-4;
  cases[6].typical_p = 0.2;
  cases[7].typical_p = 0.95;
  for (const SamplingParams& params : cases) {
    ExpectAsDefined(logprobs, params, {}, 1e-12);
    if (HasFatalFailure()) return;
  }
}

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
  params.follow_kinds = true;
  EXPECT_TRUE(HasAdjustments(params));
  params.follow_kinds = false;
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
