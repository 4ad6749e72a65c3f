// A million draws under every parameter, and under every two of them, follow
// the plain definition.

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/sampling/sampler.h"
#include "tests/model/sampling/sampling_oracle.h"
#include "tests/model/sampling/some_kinds.h"
#include "tests/model/sampling/statistics.h"

namespace txl {
namespace {

constexpr size_t kVocabSize = 16;
constexpr int64_t kDraws = 1000000;
constexpr double kSignificance = 0.001;
// Draws that follow another distribution than the one they are compared with.
constexpr double kSurelyWrong = 1e-9;

class SamplerDistributionTest : public testing::Test {
 protected:
  SamplerDistributionTest() {
    std::mt19937 random(1);
    logprobs_ = RandomLogprobs(random, kVocabSize, 1.2);
    context_.recent_ids = {1, 2, 3, 3, 7, 2, 9, 3};
    context_.kinds = SomeKinds(kVocabSize);
  }

  // How often each id is drawn at positions 0, 1, ... under one seed. None on
  // an error.
  std::vector<int64_t> Draw(const SamplingParams& params,
                            std::vector<int64_t> bin_ends = {kVocabSize}) {
    const Sampler sampler({std::move(bin_ends)}, SomeTable(kVocabSize));
    std::vector<int64_t> counts(kVocabSize);
    SampleContext context;
    context.recent_ids = context_.recent_ids;
    context.banned_ids = context_.banned_ids;
    for (int64_t position = 0; position < kDraws; ++position) {
      context.position = position;
      const auto id = sampler.Sample(logprobs_, params, context);
      if (!id.ok()) return {};
      ++counts[*id];
    }
    return counts;
  }

  std::vector<double> Expected(const SamplingParams& params) const {
    return OracleDistribution(logprobs_, params, context_);
  }

  // p-value of the draws.
  double DrawAndCompare(const SamplingParams& params,
                        std::vector<int64_t> bin_ends = {kVocabSize}) {
    const std::vector<int64_t> counts = Draw(params, std::move(bin_ends));
    return counts.empty() ? -1 : GoodnessOfFit(counts, Expected(params));
  }

  std::vector<float> logprobs_;
  OracleContext context_;
};

TEST_F(SamplerDistributionTest, EveryParameterAlone) {
  for (const ParameterCase& c : AllParameterCases()) {
    SamplingParams params;
    params.seed = 17;
    c.set(params);
    EXPECT_GT(DrawAndCompare(params), kSignificance) << c.name;
  }
}

TEST_F(SamplerDistributionTest, EveryParameterWithBannedIds) {
  context_.banned_ids = {0, 6, 15};
  for (const ParameterCase& c : AllParameterCases()) {
    SamplingParams params;
    params.seed = 31;
    c.set(params);
    EXPECT_GT(DrawAndCompare(params, {5, 9, kVocabSize}), kSignificance)
        << c.name;
  }
}

struct ParameterPair {
  ParameterCase first;
  ParameterCase second;
};

void PrintTo(const ParameterPair& pair, std::ostream* out) {
  *out << pair.first.name << "_and_" << pair.second.name;
}

std::vector<ParameterPair> AllPairs() {
  const std::vector<ParameterCase> cases = AllParameterCases();
  std::vector<ParameterPair> pairs;
  for (size_t a = 0; a < cases.size(); ++a) {
    for (size_t b = a + 1; b < cases.size(); ++b) {
      pairs.push_back({cases[a], cases[b]});
    }
  }
  return pairs;
}

class SamplerPairDistributionTest
    : public SamplerDistributionTest,
      public testing::WithParamInterface<ParameterPair> {
 protected:
  static SamplingParams With(std::initializer_list<ParameterCase> cases) {
    SamplingParams params;
    params.seed = 37;
    for (const ParameterCase& c : cases) c.set(params);
    return params;
  }
};

// And no other distribution: where a parameter of the pair matters, the draws
// are told from those that leave it out.
TEST_P(SamplerPairDistributionTest, DrawsFollowBothParameters) {
  const auto& [a, b] = GetParam();
  const std::vector<int64_t> counts = Draw(With({a, b}), {5, 9, kVocabSize});
  ASSERT_FALSE(counts.empty());
  const std::vector<double> expected = Expected(With({a, b}));
  EXPECT_GT(GoodnessOfFit(counts, expected), kSignificance);
  for (const ParameterCase& alone : {a, b}) {
    const std::vector<double> other = Expected(With({alone}));
    if (other == expected) continue;
    EXPECT_LT(GoodnessOfFit(counts, other), kSurelyWrong)
        << "can't be told from " << alone.name << " alone";
  }
}

INSTANTIATE_TEST_SUITE_P(, SamplerPairDistributionTest,
                         testing::ValuesIn(AllPairs()));

TEST_F(SamplerDistributionTest, ClusterFirstForAnyBinsAndTemperature) {
  const std::vector<std::vector<int64_t>> all_bins = {
      {kVocabSize}, {5, kVocabSize}, {3, 8, 9, kVocabSize}};
  for (const std::vector<int64_t>& bins : all_bins) {
    for (const double temperature : {0.5, 1.0, 1.8}) {
      SamplingParams params;
      params.seed = 23;
      params.temperature = temperature;
      EXPECT_GT(DrawAndCompare(params, bins), kSignificance)
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
    EXPECT_GT(DrawAndCompare(params, {5, 9, kVocabSize}), kSignificance)
        << temperature;
  }
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
