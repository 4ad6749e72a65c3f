// Distributions that are evaluated as far as someone asks give what whole ones
// give, and ask no more than they must.

#include "model/sampling/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/sampling/sampler.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kNeverFloat = -std::numeric_limits<float>::infinity();

// An adaptive softmax in memory that counts which clusters were evaluated.
class CountingDistribution final : public NextTokenDistribution {
 public:
  // `sharpness`: how far log-probabilities lie apart.
  CountingDistribution(VocabularyBins bins, double sharpness,
                       std::mt19937& random)
      : bins_(std::move(bins)) {
    head_ = Normalised(bins_.ends[0] + bins_.clusters(), sharpness, random);
    for (size_t c = 0; c < bins_.clusters(); ++c) {
      std::vector<float> words =
          Normalised(bins_.cluster_size(c), sharpness, random);
      for (float& word : words) word += static_cast<float>(ClusterMass(c));
      tails_.push_back(words);
    }
  }

  const VocabularyBins& bins() const override { return bins_; }
  absl::Span<const float> Words() override {
    return absl::MakeConstSpan(head_).first(bins_.ends[0]);
  }
  double ClusterMass(size_t c) override { return head_[bins_.ends[0] + c]; }
  absl::Span<const float> ClusterWords(size_t c) override {
    evaluated_.insert(c);
    return tails_[c];
  }
  bool IsEvaluated(size_t c) const override { return evaluated_.contains(c); }

  // The same numbers, evaluated one and all.
  std::vector<float> Whole() const {
    std::vector<float> all(head_.begin(), head_.begin() + bins_.ends[0]);
    for (const auto& tail : tails_) {
      all.insert(all.end(), tail.begin(), tail.end());
    }
    return all;
  }
  const std::set<size_t>& evaluated() const { return evaluated_; }
  void Forget() { evaluated_.clear(); }

 private:
  static std::vector<float> Normalised(size_t size, double sharpness,
                                       std::mt19937& random) {
    std::normal_distribution<double> normal(0, sharpness);
    std::vector<double> logits(size);
    double sum = 0;
    for (double& logit : logits) {
      logit = normal(random);
      sum += std::exp(logit);
    }
    std::vector<float> out;
    for (const double logit : logits) {
      out.push_back(static_cast<float>(logit - std::log(sum)));
    }
    return out;
  }

  VocabularyBins bins_;
  std::vector<float> head_;
  std::vector<std::vector<float>> tails_;
  std::set<size_t> evaluated_;
};

const VocabularyBins kBins{{8, 15, 40, 100}};

SamplingParams With(double temperature, int64_t top_k, double min_p) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.min_p = min_p;
  return params;
}

// Evaluates everything before the sampler looks: forced full.
class EvaluatedWhole final : public NextTokenDistribution {
 public:
  explicit EvaluatedWhole(CountingDistribution& inner)
      : inner_(inner), whole_(inner.Whole()) {}
  const VocabularyBins& bins() const override { return inner_.bins(); }
  absl::Span<const float> Words() override { return inner_.Words(); }
  double ClusterMass(size_t) override { return 0; }  // rules nothing out
  absl::Span<const float> ClusterWords(size_t c) override {
    return absl::MakeConstSpan(whole_).subspan(bins().ends[c],
                                               bins().cluster_size(c));
  }
  bool IsEvaluated(size_t) const override { return true; }

 private:
  CountingDistribution& inner_;
  const std::vector<float> whole_;
};

TEST(LazyDistribution, FiltersKeepTheSameTokensAsOnTheWholeOne) {
  std::mt19937 random(1);
  const Sampler sampler(kBins);
  int spared = 0;
  for (int i = 0; i < 3000; ++i) {
    CountingDistribution lazy(kBins, 1 + i % 4, random);
    EvaluatedWhole whole(lazy);
    SampleContext context;
    context.position = i;
    const std::vector<int32_t> banned = {static_cast<int32_t>(random() % 100)};
    if (i % 2 == 0) context.banned_ids = banned;
    for (const SamplingParams& params :
         {With(0, 0, 0), With(1, 5, 0), With(0.7, 40, 0), With(1.3, 1, 0),
          With(1, 0, 0.05), With(0.5, 0, 0.3), With(1, 12, 0.1)}) {
      const auto from_lazy = sampler.Sample(lazy, params, context);
      spared += lazy.evaluated().size() < kBins.clusters();
      lazy.Forget();
      ASSERT_EQ(*from_lazy, *sampler.Sample(whole, params, context))
          << "case " << i << ", top_k " << params.top_k;
    }
  }
  EXPECT_GT(spared, 3000);
}

TEST(LazyDistribution, ADrawnHeadWordCostsNoCluster) {
  std::mt19937 random(2);
  const Sampler sampler(kBins);
  CountingDistribution lazy(kBins, 1, random);
  for (int64_t position = 0; position < 2000; ++position) {
    SampleContext context;
    context.position = position;
    lazy.Forget();
    const int32_t id = *sampler.Sample(lazy, SamplingParams(), context);
    if (id < kBins.ends[0]) {
      ASSERT_THAT(lazy.evaluated(), IsEmpty());
    } else {
      ASSERT_EQ(lazy.evaluated().size(), 1u);
    }
  }
}

TEST(LazyDistribution, PenaltiesAndBiasNeedAllWords) {
  std::mt19937 random(3);
  const Sampler sampler(kBins);
  CountingDistribution lazy(kBins, 5, random);
  SamplingParams params = With(0, 0, 0);
  params.logit_bias = {{99, 100.0}};
  EXPECT_EQ(*sampler.Sample(lazy, params, {}), 99);
  EXPECT_EQ(lazy.evaluated().size(), kBins.clusters());
}

TEST(LazyDistribution, AllowedIdsCostTheirOwnClustersOnly) {
  std::mt19937 random(6);
  const Sampler sampler(kBins);
  for (int i = 0; i < 300; ++i) {
    CountingDistribution lazy(kBins, 1 + i % 4, random);
    EvaluatedWhole whole(lazy);
    SampleContext context;
    context.position = i;
    for (SamplingParams params :
         {With(0, 0, 0), With(1, 0, 0), With(0.7, 3, 0), With(1, 0, 0.2)}) {
      params.allowed_token_ids = {2, 7};
      lazy.Forget();
      ASSERT_TRUE(sampler.Sample(lazy, params, context).ok());
      ASSERT_THAT(lazy.evaluated(), IsEmpty());
      params.allowed_token_ids = {2, 16, 20, 39};
      lazy.Forget();
      const int32_t id = *sampler.Sample(lazy, params, context);
      ASSERT_THAT(lazy.evaluated(), ElementsAre(1));
      ASSERT_EQ(id, *sampler.Sample(whole, params, context));
    }
  }
}

TEST(LazyDistribution, NamedLogprobsCostTheirOwnClustersOnly) {
  std::mt19937 random(7);
  CountingDistribution lazy(kBins, 1, random);
  const std::vector<float> whole = lazy.Whole();
  std::vector<TokenLogprob> named = {{1, -1.0f}};
  AppendLogprobs(lazy, {99, 3, 99}, named);
  EXPECT_THAT(lazy.evaluated(), ElementsAre(2));
  ASSERT_EQ(named.size(), 4u);  // behind what was there
  for (const auto& [place, id] : {std::pair{1, 99}, {2, 3}, {3, 99}}) {
    EXPECT_EQ(named[place].token_id, id);
    EXPECT_EQ(named[place].logprob, whole[id]);
  }
}

TEST(LazyDistribution, ALogprobCostsItsOwnClusterOnly) {
  std::mt19937 random(4);
  CountingDistribution lazy(kBins, 1, random);
  const std::vector<float> whole = lazy.Whole();
  for (const int32_t id : {0, 7}) EXPECT_EQ(LogprobOf(lazy, id), whole[id]);
  EXPECT_THAT(lazy.evaluated(), IsEmpty());
  for (const int32_t id : {15, 39}) EXPECT_EQ(LogprobOf(lazy, id), whole[id]);
  EXPECT_THAT(lazy.evaluated(), ElementsAre(1));
  for (const int32_t id : {8, 14, 40, 99}) {
    EXPECT_EQ(LogprobOf(lazy, id), whole[id]);
  }
}

TEST(LazyDistribution, TopLogprobsAreThoseOfTheWholeOne) {
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    CountingDistribution lazy(kBins, 1 + i % 3, random);
    const std::vector<float> values = lazy.Whole();
    const VocabularyBins one_bin{{kBins.ends.back()}};
    FullDistribution whole(values, one_bin);
    const int count = 1 + static_cast<int>(random() % 20);
    const auto from_lazy = TopLogprobs(lazy, count);
    const auto expected = TopLogprobs(whole, count);
    ASSERT_EQ(from_lazy.size(), expected.size());
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ(from_lazy[k].token_id, expected[k].token_id);
      ASSERT_EQ(from_lazy[k].logprob, expected[k].logprob);
    }
  }
}

TEST(FullDistribution, EveryClusterIsEvaluated) {
  const std::vector<float> logprobs(4, std::log(0.25f));
  const VocabularyBins bins{{1, 3, 4}};
  const FullDistribution distribution(logprobs, bins);
  EXPECT_TRUE(distribution.IsEvaluated(0));
  EXPECT_TRUE(distribution.IsEvaluated(1));
}

TEST(FullDistribution, AClustersMassIsTheSumOfItsWords) {
  const std::vector<float> logprobs = {std::log(0.5f), std::log(0.125f),
                                       std::log(0.25f), std::log(0.125f)};
  const VocabularyBins bins{{1, 3, 4}};
  FullDistribution distribution(logprobs, bins);
  EXPECT_THAT(distribution.Words(), ElementsAre(logprobs[0]));
  EXPECT_NEAR(distribution.ClusterMass(0), std::log(0.375), 1e-7);
  EXPECT_NEAR(distribution.ClusterMass(1), std::log(0.125), 1e-7);
  EXPECT_THAT(distribution.ClusterWords(0),
              ElementsAre(logprobs[1], logprobs[2]));
}

std::vector<int32_t> TopIds(const std::vector<float>& logprobs, int count) {
  const VocabularyBins bins{{static_cast<int64_t>(logprobs.size())}};
  FullDistribution distribution(logprobs, bins);
  std::vector<int32_t> ids;
  for (const TokenLogprob& top : TopLogprobs(distribution, count)) {
    EXPECT_EQ(top.logprob, logprobs[top.token_id]);
    ids.push_back(top.token_id);
  }
  return ids;
}

TEST(TopLogprobs, AreSortedEqualOnesById) {
  EXPECT_THAT(TopIds({-3, -1, -2, -1, -3}, 4), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(TopIds({-3, -1, -2, -1, -3}, 1), ElementsAre(1));
}

TEST(TopLogprobs, AreAsManyAsThereAre) {
  EXPECT_THAT(TopIds({-2, -1}, 20), ElementsAre(1, 0));
  EXPECT_THAT(TopIds({-2, -1}, 0), IsEmpty());
  EXPECT_THAT(TopIds({}, 3), IsEmpty());
  EXPECT_THAT(TopIds({kNeverFloat, -1}, 2), ElementsAre(1, 0));
}

TEST(TopLogprobs, LeaveNanOut) {
  EXPECT_THAT(TopIds({NAN, -2, NAN, -1}, 3), ElementsAre(3, 1));
}

TEST(TopLogprobs, EqualAFullSortOnRandomInputWithTies) {
  std::mt19937 random(6);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> logprobs(random() % 60);
    for (float& l : logprobs) l = -static_cast<float>(random() % 10);
    std::vector<int32_t> expected(logprobs.size());
    for (size_t id = 0; id < expected.size(); ++id) expected[id] = id;
    std::stable_sort(
        expected.begin(), expected.end(),
        [&](int32_t a, int32_t b) { return logprobs[a] > logprobs[b]; });
    const int count = random() % 20;
    expected.resize(std::min<size_t>(expected.size(), count));
    ASSERT_EQ(TopIds(logprobs, count), expected);
  }
}

}  // namespace
}  // namespace txl
