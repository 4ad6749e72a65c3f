#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/model/cuda/device/warp_kernels.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

struct Computed {
  std::vector<double> warp_sum, warp_running;
  std::vector<SumAndLargest> block_both;
  std::vector<int32_t> block_before, block_total;
};

Computed Compute(const std::vector<double>& values) {
  const int threads = static_cast<int>(values.size());
  const Array<double> given = ToDevice(values);
  const Array<double> sum = Unwritten<double>(threads);
  const Array<double> running = Unwritten<double>(threads);
  const Array<SumAndLargest> both = Unwritten<SumAndLargest>(threads);
  const Array<int32_t> before = Unwritten<int32_t>(threads);
  const Array<int32_t> total = Unwritten<int32_t>(threads);
  Stream stream;
  LaunchWarpFunctions(
      stream, threads, given.data(),
      {sum.data(), running.data(), both.data(), before.data(), total.data()});
  stream.Wait();
  return {ToHost(sum), ToHost(running), ToHost(both), ToHost(before),
          ToHost(total)};
}

std::vector<double> RandomValues(int count) {
  std::mt19937 random(count);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

// Sums of 512 numbers of about 1: far below 1e-12 apart in any order.
constexpr double kTolerance = 1e-12;

TEST(WarpTest, SumsAndRunningSumsAreThoseOfEachWarp) {
  for (const int threads : {32, 96, 512}) {
    const std::vector<double> values = RandomValues(threads);
    const Computed computed = Compute(values);
    for (int warp = 0; warp < threads; warp += 32) {
      double running = 0;
      for (int t = warp; t < warp + 32; ++t) {
        running += values[t];
        EXPECT_NEAR(computed.warp_running[t], running, kTolerance);
      }
      for (int t = warp; t < warp + 32; ++t) {
        EXPECT_NEAR(computed.warp_sum[t], running, kTolerance);
        EXPECT_EQ(computed.warp_sum[t], computed.warp_sum[warp]);
      }
    }
  }
}

TEST(WarpTest, ABlockReducesToTheSameBitsInEveryThread) {
  for (const int threads : {32, 96, 512}) {
    const std::vector<double> values = RandomValues(threads);
    const Computed computed = Compute(values);
    double sum = 0;
    for (const double value : values) sum += value;
    for (const SumAndLargest& both : computed.block_both) {
      EXPECT_NEAR(both.sum, sum, kTolerance);
      EXPECT_EQ(both.sum, computed.block_both[0].sum);
      EXPECT_EQ(both.largest, threads - 1);
    }
  }
}

// The order is part of the contract: halves of the warp first. 2^60 swallows
// what is added to it alone, but not 32 of them that were added before.
TEST(WarpTest, LanesAreAddedInHalves) {
  std::vector<double> values(32, 0);
  values[0] = 0x1p60;
  values[16] = -0x1p60;
  values[1] = 1;
  EXPECT_EQ(Compute(values).warp_sum[5], 1);
  values[16] = 0;
  values[8] = -0x1p60;
  values[24] = 1;  // meets lane 8 first and is lost
  values[1] = 0;
  EXPECT_EQ(Compute(values).warp_sum[5], 0);
}

TEST(WarpTest, EveryThreadKnowsWhatComesBeforeIt) {
  for (const int threads : {32, 96, 512}) {
    const Computed computed = Compute(RandomValues(threads));
    int before = 0;
    for (int t = 0; t < threads; ++t) {
      EXPECT_EQ(computed.block_before[t], before);
      before += t % 5;
    }
    for (const int32_t total : computed.block_total) EXPECT_EQ(total, before);
  }
}

TEST(WarpTest, OrdersOfThreadsChangeNothing) {
  const std::vector<double> values = RandomValues(256);
  ShuffleThreads(1);
  const Computed first = Compute(values);
  ShuffleThreads(2);
  const Computed second = Compute(values);
  EXPECT_EQ(first.warp_sum, second.warp_sum);
  EXPECT_EQ(first.warp_running, second.warp_running);
  EXPECT_EQ(first.block_before, second.block_before);
  EXPECT_EQ(first.block_both[0].sum, second.block_both[0].sum);
}

}  // namespace
}  // namespace txl::cuda
