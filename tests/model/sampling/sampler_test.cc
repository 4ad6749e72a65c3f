#include "model/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/sampling/cluster_draw.h"
#include "model/sampling/draw.h"
#include "tests/model/sampling/sampling_oracle.h"
#include "tests/model/sampling/some_kinds.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kNeverSampled = -std::numeric_limits<float>::infinity();

std::vector<float> FloatLogs(const std::vector<double>& probabilities) {
  std::vector<float> logprobs;
  for (const double p : probabilities) {
    logprobs.push_back(static_cast<float>(std::log(p)));
  }
  return logprobs;
}

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

SampleContext AtPosition(int64_t position) {
  SampleContext context;
  context.position = position;
  return context;
}

std::vector<int32_t> SampleMany(const Sampler& sampler,
                                const std::vector<float>& logprobs,
                                const SamplingParams& params, int n) {
  std::vector<int32_t> ids;
  for (int64_t position = 0; position < n; ++position) {
    const auto id = sampler.Sample(logprobs, params, AtPosition(position));
    EXPECT_TRUE(id.ok()) << id.status();
    ids.push_back(id.value_or(-1));
  }
  return ids;
}

// The least legal penalty makes of a biased word more than a double can hold.
TEST(AnySampling, GivesATokenForEveryLegalBiasAndPenalty) {
  const Sampler sampler({{4}});
  const std::vector<int32_t> recent = {2, 3};
  SampleContext context;
  context.recent_ids = recent;
  for (const double temperature : {0.0, 1e-308, 1.0, 100.0}) {
    for (const double typical_p : {1.0, 0.5}) {
      SamplingParams params;
      params.temperature = temperature;
      params.typical_p = typical_p;
      params.repetition_penalty = 1e-308;
      params.logit_bias = {{2, 100}, {1, 50}};
      const auto id =
          sampler.Sample(FloatLogs({0.1, 0.4, 0.2, 0.3}), params, context);
      ASSERT_TRUE(id.ok()) << id.status() << " at " << temperature;
      // Token 2 alone is both positive by its bias and seen.
      EXPECT_EQ(*id, 2);
    }
  }
}

TEST(GreedySampling, TakesTheMostProbableOfEqualOnesTheLowestId) {
  const Sampler sampler({{4}});
  EXPECT_EQ(*sampler.Sample(FloatLogs({0.1, 0.4, 0.2, 0.3}), Greedy(), {}), 1);
  EXPECT_EQ(*sampler.Sample(FloatLogs({0.1, 0.3, 0.3, 0.3}), Greedy(), {}), 1);
  EXPECT_EQ(*sampler.Sample({kNeverSampled, kNeverSampled, -1, kNeverSampled},
                            Greedy(), {}),
            2);
}

TEST(GreedySampling, ComesAfterBiasPenaltiesAndBans) {
  const Sampler sampler({{3}});
  const std::vector<float> logprobs = FloatLogs({0.5, 0.3, 0.2});
  SamplingParams params = Greedy();
  params.logit_bias = {{2, 3.0}};
  EXPECT_EQ(*sampler.Sample(logprobs, params, {}), 2);
  params = Greedy();
  params.presence_penalty = 2;
  SampleContext context;
  const std::vector<int32_t> recent = {0};
  context.recent_ids = recent;
  EXPECT_EQ(*sampler.Sample(logprobs, params, context), 1);
  context.banned_ids = recent;
  EXPECT_EQ(*sampler.Sample(logprobs, Greedy(), context), 1);
}

TEST(GreedySampling, DependsOnNeitherSeedNorPositionNorFilters) {
  const Sampler sampler({{2, 4}});
  const std::vector<float> logprobs = FloatLogs({0.1, 0.2, 0.4, 0.3});
  SamplingParams params = Greedy();
  params.top_k = 3;
  params.typical_p = 0.1;
  for (const uint64_t seed : {0ull, 1ull, ~0ull}) {
    params.seed = seed;
    EXPECT_EQ(*sampler.Sample(logprobs, params, AtPosition(seed % 99)), 2);
  }
}

TEST(GreedySampling, TakesTheBestAllowedToken) {
  const std::vector<float> logprobs = FloatLogs({0.1, 0.2, 0.4, 0.3});
  for (const Sampler& sampler : {Sampler({{4}}), Sampler({{1, 2, 4}})}) {
    SamplingParams params = Greedy();
    params.allowed_token_ids = {0, 1, 3};
    EXPECT_EQ(*sampler.Sample(logprobs, params, {}), 3);
    SampleContext context;
    const std::vector<int32_t> banned = {3};
    context.banned_ids = banned;
    EXPECT_EQ(*sampler.Sample(logprobs, params, context), 1);
    params.logit_bias = {{0, 1.0}, {2, 100.0}};
    EXPECT_EQ(*sampler.Sample(logprobs, params, context), 0);
  }
}

TEST(Sampler, OneAllowedTokenIsTheTokenWhateverElseIsAsked) {
  const Sampler sampler({{2, 4}});
  for (const ParameterCase& c : AllParameterCases()) {
    SamplingParams params;
    c.set(params);
    params.logit_bias.clear();
    params.allowed_token_ids = {3};
    for (const int32_t id :
         SampleMany(sampler, FloatLogs({0.5, 0.3, 0.199, 0.001}), params, 50)) {
      ASSERT_EQ(id, 3) << c.name;
    }
  }
}

TEST(Sampler, NoTokenIsLeftWhereAllThatAreAllowedAreBannedOrImpossible) {
  const Sampler sampler({{1, 3}});
  SamplingParams params;
  params.allowed_token_ids = {1, 2};
  const std::vector<int32_t> banned = {2};
  SampleContext context;
  context.banned_ids = banned;
  for (const double temperature : {0.0, 1.0}) {
    params.temperature = temperature;
    EXPECT_EQ(sampler.Sample({-1, kNeverSampled, -1}, params, context).status(),
              NothingToSample());
  }
}

TEST(FollowedKinds, AreThoseOfTheRuleBehindTheLastId) {
  const Sampler sampler({{4, 10}}, SomeTable(10));
  SamplingParams params = Greedy();
  params.follow_kinds = true;
  // Id 9, the best, is of no kind.
  std::vector<float> logprobs(10);
  for (int id = 0; id < 10; ++id) logprobs[id] = static_cast<float>(id - 20);
  const auto best_behind = [&](std::vector<int32_t> recent) {
    SampleContext context;
    context.recent_ids = recent;
    return *sampler.Sample(logprobs, params, context);
  };
  EXPECT_EQ(best_behind({}), 9);
  EXPECT_EQ(best_behind({0}), 8);     // A: A, B, D
  EXPECT_EQ(best_behind({0, 6}), 7);  // B: A, C
  EXPECT_EQ(best_behind({6, 2}), 9);  // C: anything
  EXPECT_EQ(best_behind({2, 8}), 7);  // D: A, B, C
  EXPECT_EQ(best_behind({8, 4}), 9);  // no kind: anything
  params.allowed_token_ids = {0, 4, 6, 9};
  EXPECT_EQ(best_behind({0}), 6);
  params.follow_kinds = false;
  EXPECT_EQ(best_behind({0}), 9);
}

TEST(FollowedKinds, AreTheOraclesUnderEveryOtherParameter) {
  std::mt19937 random(11);
  const Sampler sampler({{6, 11, 16}}, SomeTable(16));
  OracleContext oracle;
  oracle.kinds = SomeKinds(16);
  oracle.banned_ids = {1};
  for (int round = 0; round < 40; ++round) {
    const std::vector<float> logprobs = RandomLogprobs(random, 16, 2);
    oracle.recent_ids = {3, 5, static_cast<int32_t>(round % 16)};
    SampleContext context;
    context.recent_ids = oracle.recent_ids;
    context.banned_ids = oracle.banned_ids;
    for (const ParameterCase& c : AllParameterCases()) {
      SamplingParams params;
      c.set(params);
      params.follow_kinds = true;
      const std::vector<double> p =
          OracleDistribution(logprobs, params, oracle);
      for (context.position = 0; context.position < 20; ++context.position) {
        const double uniform =
            UniformDraw(params.seed, context.position, /*draw=*/0);
        ASSERT_EQ(*sampler.Sample(logprobs, params, context),
                  static_cast<int32_t>(PickByWeight(p, uniform)))
            << c.name << " behind " << oracle.recent_ids.back();
      }
      params.temperature = 0;
      const std::vector<double> l = OracleAdjusted(logprobs, params, oracle);
      ASSERT_EQ(*sampler.Sample(logprobs, params, context),
                std::max_element(l.begin(), l.end()) - l.begin())
          << c.name;
    }
  }
}

TEST(FollowedKinds, LeaveNothingWhereOtherRulesForbidTheRest) {
  const Sampler sampler({{2, 5}}, SomeTable(5));
  SampleContext context;
  const std::vector<int32_t> recent = {1}, banned = {2};
  context.recent_ids = recent;
  for (const double temperature : {0.0, 1.0}) {
    SamplingParams params;
    params.temperature = temperature;
    params.follow_kinds = true;
    params.allowed_token_ids = {1, 2, 4};
    const std::vector<float> logprobs = {-1, -1, -2, -1, -2};
    EXPECT_EQ(*sampler.Sample(logprobs, params, context), 2);
    SampleContext banning = context;
    banning.banned_ids = banned;
    const absl::Status status =
        sampler.Sample(logprobs, params, banning).status();
    EXPECT_EQ(status, NothingToSample());
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("follow_kinds"));
  }
}

TEST(FollowedKinds, AModelWithoutThemHasNone) {
  EXPECT_FALSE(Sampler({{4}}).has_kinds());
  EXPECT_TRUE(Sampler({{4}}, SomeTable(4)).has_kinds());
}

TEST(Sampler, OneBinAtTemperatureOneWalksTheIdsWithDrawZero) {
  const std::vector<double> probabilities = {0.1, 0.25, 0.4, 0.25};
  const Sampler sampler({{4}});
  SamplingParams params;
  params.seed = 99;
  const auto ids = SampleMany(sampler, FloatLogs(probabilities), params, 2000);
  for (size_t position = 0; position < ids.size(); ++position) {
    double rest = UniformDraw(99, position, 0);
    int32_t expected = 0;
    while (rest >= probabilities[expected]) rest -= probabilities[expected++];
    ASSERT_EQ(ids[position], expected);
  }
}

TEST(Sampler, FilteredTokensAreDrawnInOrderOfIdWithDrawZero) {
  const Sampler sampler({{2, 4}});
  SamplingParams params;
  params.seed = 5;
  params.top_k = 2;
  const auto ids =
      SampleMany(sampler, FloatLogs({0.3, 0.05, 0.6, 0.05}), params, 2000);
  for (size_t position = 0; position < ids.size(); ++position) {
    ASSERT_EQ(ids[position], UniformDraw(5, position, 0) < 1.0 / 3 ? 0 : 2);
  }
}

TEST(Sampler, IsAFunctionOfSeedAndPosition) {
  std::mt19937 random(1);
  const std::vector<float> logprobs = RandomLogprobs(random, 50, 0.5);
  const Sampler sampler({{10, 50}});
  SamplingParams params;
  params.seed = 1;
  const auto first = SampleMany(sampler, logprobs, params, 200);
  EXPECT_EQ(SampleMany(sampler, logprobs, params, 200), first);
  EXPECT_GT(std::set<int32_t>(first.begin(), first.end()).size(), 10u);
  params.seed = 2;
  EXPECT_NE(SampleMany(sampler, logprobs, params, 200), first);
}

TEST(Sampler, AskingForTopLogprobsChangesNoToken) {
  std::mt19937 random(2);
  const std::vector<float> logprobs = RandomLogprobs(random, 50, 1);
  const Sampler sampler({{50}});
  const auto without = SampleMany(sampler, logprobs, SamplingParams(), 100);
  for (int64_t position = 0; position < 100; ++position) {
    FullDistribution distribution(logprobs, sampler.bins());
    EXPECT_EQ(TopLogprobs(distribution, 20).size(), 20u);
    EXPECT_EQ(*sampler.Sample(logprobs, SamplingParams(), AtPosition(position)),
              without[position]);
  }
}

// The model gives head and tails; the joint distribution is rounded to float.
TEST(Sampler, GivesTheTokensOfALazyEvaluation) {
  std::mt19937 random(3);
  const std::vector<int64_t> ends = {5, 12, 40};
  const std::vector<float> head = RandomLogprobs(random, 7, 1);
  const std::vector<std::vector<float>> tails = {RandomLogprobs(random, 7, 1),
                                                 RandomLogprobs(random, 28, 1)};
  std::vector<float> joint(head.begin(), head.begin() + 5);
  std::vector<std::vector<double>> joint_tails(2);
  for (size_t c = 0; c < 2; ++c) {
    for (const float l : tails[c]) {
      joint_tails[c].push_back(double{head[5 + c]} + l);
      joint.push_back(static_cast<float>(joint_tails[c].back()));
    }
  }
  const Sampler sampler({ends});
  const std::vector<double> words(head.begin(), head.begin() + 5);
  for (const double temperature : {0.7, 1.0, 1.5}) {
    SamplingParams params;
    params.temperature = temperature;
    const auto ids = SampleMany(sampler, joint, params, 5000);
    for (size_t position = 0; position < ids.size(); ++position) {
      HeadDistribution lazy{words, {{head[5], 7, false}, {head[6], 28, false}}};
      UniformSequence uniforms(params.seed, position);
      const auto pick = DrawClusterFirst(
          lazy,
          [&](size_t c) { return absl::Span<const double>(joint_tails[c]); },
          temperature, uniforms);
      const int64_t begin = pick->cluster ? ends[*pick->cluster] : 0;
      ASSERT_EQ(ids[position], begin + static_cast<int64_t>(pick->index));
    }
  }
}

TEST(Sampler, ThePathIsChosenByFiltersPenaltiesAndBiasOnly) {
  SamplingParams plain;
  plain.temperature = 0.5;
  plain.seed = 3;
  plain.penalty_window = 10;
  plain.min_tokens = 5;
  EXPECT_FALSE(UsesJointDistribution(plain));
  for (const ParameterCase& c : AllParameterCases()) {
    SamplingParams params;
    c.set(params);
    EXPECT_EQ(UsesJointDistribution(params),
              c.name != "cold" && c.name != "hot" && c.name != "window")
        << c.name;
  }
}

TEST(Sampler, ADistributionWithNanOrPositiveInfinityIsAnInternalError) {
  const Sampler sampler({{3}});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    SamplingParams filtered;
    filtered.top_k = 1;
    for (const SamplingParams& params :
         {SamplingParams(), Greedy(), filtered}) {
      EXPECT_EQ(sampler.Sample({-1, bad, -1}, params, {}).status().code(),
                absl::StatusCode::kInternal);
    }
  }
}

TEST(Sampler, NoPossibleTokenIsAnInternalError) {
  const std::vector<float> impossible = {kNeverSampled, kNeverSampled,
                                         kNeverSampled};
  const std::vector<int32_t> everything = {0, 1, 2};
  SampleContext all_banned;
  all_banned.banned_ids = everything;
  for (const Sampler& sampler : {Sampler({{3}}), Sampler({{1, 3}})}) {
    SamplingParams filtered;
    filtered.top_p = 0.5;
    for (const SamplingParams& params :
         {SamplingParams(), Greedy(), filtered}) {
      EXPECT_EQ(sampler.Sample(impossible, params, {}).status().code(),
                absl::StatusCode::kInternal);
      EXPECT_EQ(
          sampler.Sample({-1, -1, -1}, params, all_banned).status().code(),
          absl::StatusCode::kInternal);
    }
  }
}

TEST(Sampler, ADistributionOfAnotherSizeIsAnInternalError) {
  const Sampler sampler({{2, 3}});
  EXPECT_EQ(sampler.Sample({-1, -1}, SamplingParams(), {}).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(sampler.Sample({}, Greedy(), {}).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace txl
