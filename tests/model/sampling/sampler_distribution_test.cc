// A million draws under every parameter follow the plain definition.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/sampling/sampler.h"
#include "tests/model/sampling/sampling_oracle.h"
#include "tests/model/sampling/statistics.h"

namespace txl {
namespace {

constexpr size_t kVocabSize = 16;
constexpr int64_t kManyDraws = 1000000;
constexpr int64_t kPairDraws = 50000;
constexpr double kSignificance = 0.001;

class SamplerDistributionTest : public testing::Test {
 protected:
  SamplerDistributionTest() {
    std::mt19937 random(1);
    logprobs_ = RandomLogprobs(random, kVocabSize, 1.2);
    context_.recent_ids = {1, 2, 3, 3, 7, 2, 9, 3};
  }

  // p-value of draws at positions 0, 1, ... under one seed.
  double DrawAndCompare(const SamplingParams& params, int64_t n_draws,
                        std::vector<int64_t> bin_ends = {kVocabSize}) {
    const Sampler sampler({std::move(bin_ends)});
    std::vector<int64_t> counts(kVocabSize);
    SampleContext context;
    context.recent_ids = context_.recent_ids;
    context.banned_ids = context_.banned_ids;
    for (int64_t position = 0; position < n_draws; ++position) {
      context.position = position;
      const auto id = sampler.Sample(logprobs_, params, context);
      if (!id.ok()) return -1;
      ++counts[*id];
    }
    return GoodnessOfFit(counts,
                         OracleDistribution(logprobs_, params, context_));
  }

  std::vector<float> logprobs_;
  OracleContext context_;
};

TEST_F(SamplerDistributionTest, EveryParameterAlone) {
  for (const ParameterCase& c : AllParameterCases()) {
    SamplingParams params;
    params.seed = 17;
    c.set(params);
    EXPECT_GT(DrawAndCompare(params, kManyDraws), kSignificance) << c.name;
  }
}

TEST_F(SamplerDistributionTest, EveryPairOfParameters) {
  const std::vector<ParameterCase> cases = AllParameterCases();
  for (size_t a = 0; a < cases.size(); ++a) {
    for (size_t b = a + 1; b < cases.size(); ++b) {
      SamplingParams params;
      params.seed = 100 * a + b;
      cases[a].set(params);
      cases[b].set(params);
      EXPECT_GT(DrawAndCompare(params, kPairDraws, {5, 9, kVocabSize}),
                kSignificance)
          << cases[a].name << " and " << cases[b].name;
    }
  }
}

TEST_F(SamplerDistributionTest, ClusterFirstForAnyBinsAndTemperature) {
  const std::vector<std::vector<int64_t>> all_bins = {
      {kVocabSize}, {5, kVocabSize}, {3, 8, 9, kVocabSize}};
  for (const std::vector<int64_t>& bins : all_bins) {
    for (const double temperature : {0.5, 1.0, 1.8}) {
      SamplingParams params;
      params.seed = 23;
      params.temperature = temperature;
      EXPECT_GT(DrawAndCompare(params, kManyDraws, bins), kSignificance)
          << bins.size() << " bins at " << temperature;
    }
  }
}

TEST_F(SamplerDistributionTest, ClusterFirstWithBannedIds) {
  context_.banned_ids = {0, 6, 15};
  for (const double temperature : {0.5, 1.0, 1.8}) {
    SamplingParams params;
    params.seed = 29;
    params.temperature = temperature;
    EXPECT_GT(DrawAndCompare(params, kPairDraws, {5, 9, kVocabSize}),
              kSignificance)
        << temperature;
  }
}

TEST_F(SamplerDistributionTest, FiltersWithBannedIds) {
  context_.banned_ids = {0, 6, 15};
  SamplingParams params;
  params.seed = 31;
  params.top_k = 5;
  EXPECT_GT(DrawAndCompare(params, kPairDraws), kSignificance);
}

TEST_F(SamplerDistributionTest, SeedsAtOnePositionAreAsGoodAsPositions) {
  const Sampler sampler({{5, 9, kVocabSize}});
  std::vector<int64_t> counts(kVocabSize);
  SamplingParams params;
  SampleContext context;
  for (uint64_t seed = 0; seed < 200000; ++seed) {
    params.seed = seed;
    ++counts[*sampler.Sample(logprobs_, params, context)];
  }
  EXPECT_GT(
      GoodnessOfFit(counts, OracleDistribution(logprobs_, params, context_)),
      kSignificance);
}

// Pairs of ids: of neighbouring positions, and of two seeds at one position.
TEST_F(SamplerDistributionTest, NeighbouringTokensAreIndependent) {
  const Sampler sampler({{5, 9, kVocabSize}});
  SamplingParams params;
  SamplingParams other;
  other.seed = 1;
  const std::vector<double> p = OracleDistribution(logprobs_, params, context_);
  std::vector<double> expected;
  for (const double a : p) {
    for (const double b : p) expected.push_back(a * b);
  }
  std::vector<int64_t> by_position(expected.size());
  std::vector<int64_t> by_seed(expected.size());
  SampleContext context;
  const auto sample = [&](const SamplingParams& sampling, int64_t position) {
    context.position = position;
    return *sampler.Sample(logprobs_, sampling, context);
  };
  for (int64_t i = 0; i < 200000; ++i) {
    ++by_position[sample(params, 2 * i) * kVocabSize +
                  sample(params, 2 * i + 1)];
    ++by_seed[sample(params, i) * kVocabSize + sample(other, i)];
  }
  EXPECT_GT(GoodnessOfFit(by_position, expected), kSignificance);
  EXPECT_GT(GoodnessOfFit(by_seed, expected), kSignificance);
}

}  // namespace
}  // namespace txl
