#include "model/cuda/kernels/log_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

struct Logits {
  int rows;
  int64_t width;
  int64_t stride;
};

std::vector<float> Draw(const Logits& logits, double scale) {
  std::mt19937 random(static_cast<uint32_t>(logits.width));
  std::normal_distribution<double> normal(40, scale);
  std::vector<float> x(logits.rows * logits.stride);
  std::generate(x.begin(), x.end(),
                [&] { return static_cast<float>(normal(random)); });
  return x;
}

std::vector<float> LogSoftmaxOf(const Logits& logits,
                                const std::vector<float>& x) {
  const Array<float> there = ToDevice(x);
  Stream stream;
  LaunchLogSoftmax(stream,
                   {logits.rows, logits.width, logits.stride, there.data()});
  stream.Wait();
  return ToHost(there);
}

// One word, fewer than threads, more than threads, more than they load at once.
const Logits kSizes[] = {
    {2, 1, 64}, {3, 61, 64}, {2, 512, 512}, {2, 1501, 1536}, {2, 16423, 16448}};

TEST(LogSoftmaxTest, IsTheLogOfNormalisedExponentials) {
  for (const Logits& logits : kSizes) {
    // Scores that are close to each other, and some that underflow.
    for (const double scale : {0.5, 60.0}) {
      const std::vector<float> x = Draw(logits, scale);
      const std::vector<float> found = LogSoftmaxOf(logits, x);
      for (int r = 0; r < logits.rows; ++r) {
        const float* row = x.data() + r * logits.stride;
        const double most = *std::max_element(row, row + logits.width);
        double sum = 0;
        for (int64_t k = 0; k < logits.width; ++k) {
          sum += std::exp(row[k] - most);
        }
        for (int64_t k = 0; k < logits.stride; ++k) {
          // What is padded stays as it is.
          const double expected =
              k < logits.width ? row[k] - most - std::log(sum) : row[k];
          // Logits up to 300: half a unit of their last place, twice.
          EXPECT_NEAR(found[r * logits.stride + k], expected, 4e-5)
              << "row " << r << ", word " << k << " of " << logits.width;
        }
      }
    }
  }
}

// As a cluster's words need it: some rows, and to each the log-probability of
// its cluster is added.
TEST(LogSoftmaxTest, RowsOfARangeGetWhatIsAddedToThem) {
  const Logits logits = {5, 61, 64};
  const std::vector<float> x = Draw(logits, 2);
  const std::vector<float> whole = LogSoftmaxOf(logits, x);
  const Array<int32_t> range = ToDevice<int32_t>({1, 4});
  const Array<int32_t> index = ToDevice<int32_t>({99, 2, 0, 1, 99});
  const Array<float> add = ToDevice<float>({-1, 7, 7, -2, 7, 7, -3, 7, 7});
  const Array<float> there = ToDevice(x);
  LogSoftmaxArgs args = {logits.rows, logits.width, logits.stride,
                         there.data()};
  args.range = {range.data(), range.data() + 1};
  args.index = index.data();
  args.add = add.data();
  args.add_stride = 3;
  Stream stream;
  LaunchLogSoftmax(stream, args);
  stream.Wait();
  const std::vector<float> found = ToHost(there);
  const float added[] = {0, -3, -1, -2, 0};
  for (int r = 0; r < logits.rows; ++r) {
    for (int64_t k = 0; k < logits.stride; ++k) {
      const int64_t i = r * logits.stride + k;
      const bool changes = r >= 1 && r < 4 && k < logits.width;
      EXPECT_EQ(found[i], changes ? whole[i] + added[r] : x[i])
          << "row " << r << ", word " << k;
    }
  }
}

TEST(LogSoftmaxTest, TheOrderOfThreadsChangesNoBit) {
  const Logits logits = kSizes[3];
  const std::vector<float> x = Draw(logits, 3);
  ShuffleThreads(1);
  const std::vector<float> once = LogSoftmaxOf(logits, x);
  ShuffleThreads(2);
  EXPECT_EQ(LogSoftmaxOf(logits, x), once);
}

TEST(LogSoftmaxTest, NumbersThatRanAwayStayInTheirRow) {
  const Logits logits = {3, 61, 64};
  const std::vector<float> healthy = Draw(logits, 1);
  const std::vector<float> expected = LogSoftmaxOf(logits, healthy);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    std::vector<float> x = healthy;
    x[logits.stride + 17] = bad;
    const std::vector<float> found = LogSoftmaxOf(logits, x);
    for (int64_t k = 0; k < logits.width; ++k) {
      EXPECT_EQ(found[k], expected[k]);
      EXPECT_TRUE(std::isnan(found[logits.stride + k]));
      EXPECT_EQ(found[2 * logits.stride + k], expected[2 * logits.stride + k]);
    }
  }
}

}  // namespace
}  // namespace txl::cuda
