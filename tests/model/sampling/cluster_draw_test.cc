#include "model/sampling/cluster_draw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/model/sampling/statistics.h"

namespace txl {
namespace {

constexpr double kNoChance = -std::numeric_limits<double>::infinity();

// A head of words and clusters, and how often each tail was looked at.
class FakeSoftmax {
 public:
  FakeSoftmax(std::vector<double> words, std::vector<std::vector<double>> tails)
      : words_(std::move(words)),
        tails_(std::move(tails)),
        evaluations_(tails_.size()) {
    head_.words = words_;
    for (const std::vector<double>& tail : tails_) {
      double mass = 0;
      for (const double l : tail) mass += std::exp(l);
      head_.clusters.push_back(
          {std::log(mass), static_cast<int64_t>(tail.size()), false});
    }
  }
  FakeSoftmax(const FakeSoftmax&) = delete;

  void Ban(size_t cluster, size_t index) {
    tails_[cluster][index] = kNoChance;
    head_.clusters[cluster].has_bans = true;
  }

  std::optional<ClusterPick> Draw(double temperature,
                                  UniformSequence& uniforms) {
    std::fill(evaluations_.begin(), evaluations_.end(), 0);
    return DrawClusterFirst(
        head_,
        [&](size_t cluster) {
          ++evaluations_[cluster];
          return absl::Span<const double>(tails_[cluster]);
        },
        temperature, uniforms);
  }

  // Words, then the members of each cluster: exact probabilities.
  std::vector<double> Distribution(double temperature) const {
    std::vector<double> p;
    for (const double l : words_) p.push_back(std::exp(l / temperature));
    for (const std::vector<double>& tail : tails_) {
      for (const double l : tail) p.push_back(std::exp(l / temperature));
    }
    double sum = 0;
    for (const double value : p) sum += value;
    for (double& value : p) value /= sum;
    return p;
  }

  size_t FlatIndex(const ClusterPick& pick) const {
    if (!pick.cluster) return pick.index;
    size_t offset = words_.size();
    for (size_t c = 0; c < *pick.cluster; ++c) offset += tails_[c].size();
    return offset + pick.index;
  }

  const std::vector<int>& evaluations() const { return evaluations_; }

 private:
  std::vector<double> words_;
  std::vector<std::vector<double>> tails_;
  std::vector<int> evaluations_;
  HeadDistribution head_;
};

std::vector<double> LogsOf(std::vector<double> probabilities) {
  for (double& p : probabilities) p = std::log(p);
  return probabilities;
}

// Probability 0.5 in the head, 0.3 and 0.2 in the clusters.
std::unique_ptr<FakeSoftmax> TwoClusters() {
  return std::make_unique<FakeSoftmax>(
      LogsOf({0.3, 0.2}),
      std::vector<std::vector<double>>{LogsOf({0.17, 0.08, 0.05}),
                                       LogsOf({0.19, 0.01})});
}

TEST(ClusterDraw, AtTemperatureOneDrawZeroPicksTheEntryDrawOneTheWord) {
  const auto softmax = TwoClusters();
  for (int64_t position = 0; position < 2000; ++position) {
    const double entry_draw = UniformDraw(1, position, 0);
    const double word_draw = UniformDraw(1, position, 1);
    UniformSequence uniforms(1, position);
    const auto pick = softmax->Draw(1, uniforms);
    ASSERT_TRUE(pick.has_value());
    if (entry_draw < 0.5) {
      EXPECT_FALSE(pick->cluster.has_value());
      EXPECT_EQ(pick->index, entry_draw < 0.3 ? 0u : 1u);
    } else if (entry_draw < 0.8) {
      ASSERT_EQ(pick->cluster, 0u);
      EXPECT_EQ(pick->index, word_draw < 17.0 / 30   ? 0u
                             : word_draw < 25.0 / 30 ? 1u
                                                     : 2u);
    } else {
      ASSERT_EQ(pick->cluster, 1u);
      EXPECT_EQ(pick->index, word_draw < 0.95 ? 0u : 1u);
    }
  }
}

TEST(ClusterDraw, OnlyTheDrawnTailIsEvaluatedAtTemperatureOne) {
  const auto softmax = TwoClusters();
  for (int64_t position = 0; position < 500; ++position) {
    UniformSequence uniforms(2, position);
    const auto pick = softmax->Draw(1, uniforms);
    for (size_t c = 0; c < 2; ++c) {
      EXPECT_EQ(softmax->evaluations()[c], pick->cluster == c ? 1 : 0);
    }
  }
}

// Redoes the three steps by hand with the draws in their fixed order.
TEST(ClusterDraw, FollowsTheFixedSequenceOfDrawsAtOtherTemperatures) {
  const std::vector<double> words = {0.3, 0.2};
  const std::vector<double> tail = {0.25, 0.15, 0.1};
  FakeSoftmax softmax(LogsOf(words), {LogsOf(tail)});
  int n_rejected = 0;
  for (const double temperature : {0.5, 2.0}) {
    const auto power = [&](double p) { return std::pow(p, 1 / temperature); };
    const double exact = power(0.25) + power(0.15) + power(0.1);
    const double bound =
        power(0.5) * (temperature > 1 ? std::pow(3, 1 - 1 / temperature) : 1);
    for (int64_t position = 0; position < 2000; ++position) {
      UniformSequence by_hand(3, position);
      const double head = power(0.3) + power(0.2);
      size_t expected = 5;
      double at = by_hand.Next() * (head + bound);
      if (at >= head && by_hand.Next() >= exact / bound) {
        ++n_rejected;
        at = by_hand.Next() * (head + exact);
      }
      if (at < head) {
        expected = at < power(0.3) ? 0 : 1;
      } else {
        const double inside = by_hand.Next() * exact;
        expected = inside < power(0.25)                 ? 2
                   : inside < power(0.25) + power(0.15) ? 3
                                                        : 4;
      }
      UniformSequence uniforms(3, position);
      const auto pick = softmax.Draw(temperature, uniforms);
      ASSERT_EQ(softmax.FlatIndex(*pick), expected) << position;
    }
  }
  EXPECT_GT(n_rejected, 100);
}

TEST(ClusterDraw, HasTheExactDistributionAtAnyTemperatureAndBan) {
  for (const double temperature : {0.4, 0.9, 1.0, 1.3, 5.0}) {
    for (const bool banned : {false, true}) {
      const auto softmax = TwoClusters();
      if (banned) softmax->Ban(0, 0);
      const std::vector<double> expected = softmax->Distribution(temperature);
      std::vector<int64_t> counts(expected.size());
      for (int64_t position = 0; position < 200000; ++position) {
        UniformSequence uniforms(4, position);
        const auto pick = softmax->Draw(temperature, uniforms);
        ++counts[softmax->FlatIndex(*pick)];
      }
      EXPECT_GT(GoodnessOfFit(counts, expected), 0.001)
          << temperature << (banned ? " with a ban" : "");
    }
  }
}

TEST(ClusterDraw, AHeadWordNeedsNoTailAtAnyTemperature) {
  FakeSoftmax softmax(LogsOf({0.999999}), {LogsOf({5e-7, 5e-7})});
  for (const double temperature : {0.5, 1.0, 1.1}) {
    UniformSequence uniforms(5, 0);
    const auto pick = softmax.Draw(temperature, uniforms);
    EXPECT_FALSE(pick->cluster.has_value());
    EXPECT_EQ(softmax.evaluations()[0], 0);
  }
}

TEST(ClusterDraw, AClusterWhoseWordsAreAllBannedIsNeverTaken) {
  FakeSoftmax softmax(LogsOf({0.01}), {LogsOf({0.98, 0.01})});
  softmax.Ban(0, 0);
  softmax.Ban(0, 1);
  for (int64_t position = 0; position < 100; ++position) {
    UniformSequence uniforms(6, position);
    EXPECT_FALSE(softmax.Draw(1, uniforms)->cluster.has_value());
  }
}

TEST(ClusterDraw, NothingIsDrawnWhenNothingIsPossible) {
  FakeSoftmax softmax({kNoChance}, {{std::log(0.5), std::log(0.5)}});
  softmax.Ban(0, 0);
  softmax.Ban(0, 1);
  for (const double temperature : {0.5, 1.0, 2.0}) {
    UniformSequence uniforms(7, 0);
    EXPECT_FALSE(softmax.Draw(temperature, uniforms).has_value());
  }
}

TEST(ClusterDraw, ExtremeTemperaturesStayFinite) {
  const auto softmax = TwoClusters();
  for (int64_t position = 0; position < 200; ++position) {
    UniformSequence cold(8, position);
    // 0.3 in the head is the most probable word.
    EXPECT_EQ(softmax->FlatIndex(*softmax->Draw(1e-300, cold)), 0u);
    UniformSequence hot(8, position);
    EXPECT_TRUE(softmax->Draw(100, hot).has_value());
  }
}

TEST(ScaledLogSumExp, EqualsTheDirectSum) {
  const std::vector<double> logprobs = LogsOf({0.2, 0.3, 0.1});
  for (const double t : {0.5, 1.0, 3.0}) {
    const double direct =
        std::pow(0.2, 1 / t) + std::pow(0.3, 1 / t) + std::pow(0.1, 1 / t);
    EXPECT_NEAR(ScaledLogSumExp(logprobs, t), t * std::log(direct), 1e-12);
  }
}

TEST(ScaledLogSumExp, HandlesTheImpossibleAndTheVerySmall) {
  EXPECT_EQ(ScaledLogSumExp({}, 1), kNoChance);
  EXPECT_EQ(ScaledLogSumExp({kNoChance, kNoChance}, 0.5), kNoChance);
  EXPECT_NEAR(ScaledLogSumExp({-2000, kNoChance, -2000}, 1),
              -2000 + std::log(2), 1e-9);
}

}  // namespace
}  // namespace txl
