#include "model/cpu/position_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace txl {
namespace {

constexpr int64_t kKeyWidth = 8, kQueries = 3, kOfHead = 1;

std::vector<float> NormalNumbers(int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

// Two heads' keys of each distance, and queries of three rows.
class PositionScoresTest : public testing::Test {
 protected:
  void Make(int64_t distances) {
    distances_ = distances;
    columns_ = RoundUp(distances, kPanel);
    std::mt19937 random(3);
    bias_ = NormalNumbers(2 * columns_, random);
    layer_.position_bias = AlignedBuffer<float>(2 * columns_);
    std::copy(bias_.begin(), bias_.end(), layer_.position_bias.data());
    for (int head = 0; head < 2; ++head) {
      keys_ = NormalNumbers(columns_ * kKeyWidth, random);
      layer_.position_keys.emplace_back(keys_.data(), columns_, kKeyWidth);
    }
    queries_ = NormalNumbers(kQueries * kKeyWidth, random);
  }

  PositionScores::Queries Into(std::vector<float>& out, int64_t stride) {
    PositionScores::Queries queries;
    queries.data = queries_.data();
    queries.stride = kKeyWidth;
    queries.rows = kQueries;
    queries.out = out.data();
    queries.out_stride = stride;
    return queries;
  }

  // The definition; distances beyond the last share its score.
  double Expected(int64_t row, int64_t distance) const {
    const int64_t column = columns_ - 1 - std::min(distance, distances_ - 1);
    double score = bias_[kOfHead * columns_ + column];
    for (int64_t k = 0; k < kKeyWidth; ++k) {
      score +=
          double{queries_[row * kKeyWidth + k]} * keys_[column * kKeyWidth + k];
    }
    return score;
  }

  int64_t distances_ = 0, columns_ = 0;
  NativeLayer layer_;
  std::vector<float> keys_, bias_, queries_;  // keys of the last head
};

TEST_F(PositionScoresTest, AreOfTheDistanceOfEachPosition) {
  for (const auto& [window, distances] :
       std::vector<std::pair<int64_t, int64_t>>{{150, 150}, {150, 40}}) {
    layer_ = {};
    Make(distances);
    const PositionScores scores(window, distances);
    std::vector<float> out(kQueries * scores.stride());
    scores.Compute(layer_, kOfHead, Into(out, scores.stride()));
    constexpr int64_t kNow = 1000;
    for (int64_t row = 0; row < kQueries; ++row) {
      for (int64_t j = kNow - window + 1; j <= kNow; ++j) {
        ASSERT_NEAR(out[row * scores.stride() + scores.Index(kNow, j)],
                    Expected(row, kNow - j), 1e-5)
            << distances << " distances, row " << row << ", position " << j;
      }
    }
  }
}

}  // namespace
}  // namespace txl
