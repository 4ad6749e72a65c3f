// What kernels are written with (model/cuda/device/kernel.h), on the emulator
// and on a device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/model/cuda/device/device_kernels.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr uint64_t kOrders = 20;

std::vector<float> RandomFloats(int count, int seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> x(count);
  for (float& value : x) value = between(random);
  return x;
}

TEST(KernelTest, EveryThreadOfEveryBlockKnowsWhereItIs) {
  const LaunchShape shape = {{3, 2, 4}, 64};
  const int blocks = 3 * 2 * 4;
  const Array<WrittenPlace> places = Unwritten<WrittenPlace>(blocks * 64);
  Stream stream;
  LaunchPlaces(stream, shape, places.data());
  stream.Wait();
  const std::vector<WrittenPlace> found = ToHost(places);
  for (int block = 0; block < blocks; ++block) {
    for (int thread = 0; thread < 64; ++thread) {
      const WrittenPlace& place = found[block * 64 + thread];
      ASSERT_EQ(place.thread, thread);
      ASSERT_EQ(place.threads, 64);
      ASSERT_EQ(place.x, block % 3);
      ASSERT_EQ(place.y, block / 3 % 2);
      ASSERT_EQ(place.z, block / 6);
      ASSERT_EQ(place.grid_x, 3);
    }
  }
}

TEST(KernelTest, ABarrierShowsWhatOtherThreadsWrote) {
  constexpr int kBlocks = 5;
  const std::vector<float> x = RandomFloats(kBlocks * kReversed, 1);
  std::vector<float> expected = x;
  for (int block = 0; block < kBlocks; ++block) {
    const auto begin = expected.begin() + block * kReversed;
    std::reverse(begin, begin + kReversed);
  }
  const Array<float> from = ToDevice(x);
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    ShuffleThreads(seed);
    const Array<float> to = Unwritten<float>(from.size());
    Stream stream;
    LaunchReverse(stream, from.data(), to.data(), kBlocks);
    stream.Wait();
    ASSERT_EQ(ToHost(to), expected);
  }
}

TEST(KernelTest, AWarpExchangesNumbers) {
  const std::vector<float> x = RandomFloats(kWarp, 2);
  double sum = 0;
  double magnitudes = 0;
  for (const float value : x) {
    sum += value;
    magnitudes += std::abs(value);
  }
  const Array<float> from = ToDevice(x);
  const Array<float> to = Unwritten<float>(5 * kWarp);
  Stream stream;
  LaunchWarpFunctions(stream, from.data(), to.data());
  stream.Wait();
  const std::vector<float> found = ToHost(to);
  // Five additions one after the other for every number.
  const double tolerance =
      5 * magnitudes * std::numeric_limits<float>::epsilon() / 2;
  for (int lane = 0; lane < kWarp; ++lane) {
    EXPECT_NEAR(found[lane], sum, tolerance);
    EXPECT_EQ(FloatToBits(found[lane]), FloatToBits(found[0]));
    EXPECT_EQ(found[kWarp + lane], *std::max_element(x.begin(), x.end()));
    EXPECT_EQ(found[2 * kWarp + lane], x[lane ^ 5]);
    EXPECT_EQ(found[3 * kWarp + lane], x[7]);
    EXPECT_EQ(found[4 * kWarp + lane], 1);
  }
}

TEST(KernelTest, AMaximumLeavesNanOutAndNoneIsNegativeWhereNoneIs) {
  std::vector<float> x(kWarp, 0.5f);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[17] = 2;
  const Array<float> from = ToDevice(x);
  const Array<float> to = Unwritten<float>(5 * kWarp);
  Stream stream;
  LaunchWarpFunctions(stream, from.data(), to.data());
  stream.Wait();
  const std::vector<float> found = ToHost(to);
  for (int lane = 0; lane < kWarp; ++lane) {
    EXPECT_TRUE(std::isnan(found[lane]));
    EXPECT_EQ(found[kWarp + lane], 2);
    EXPECT_EQ(found[4 * kWarp + lane], 0);
  }
}

TEST(KernelTest, CopiesRunAheadAndBeyondTheEndThereAreZeros) {
  for (const int rows : {1, 2, 3, 4, 50}) {
    // Small whole numbers: sums are exact.
    std::vector<float> x(rows * kSummedColumns);
    std::vector<float> expected(kSummedColumns);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i * 7919 % 1000);
      expected[i % kSummedColumns] += x[i];
    }
    const Array<float> from = ToDevice(x);
    for (uint64_t seed = 0; seed < kOrders; ++seed) {
      ShuffleThreads(seed);
      const Array<float> sums = Unwritten<float>(kSummedColumns);
      Stream stream;
      LaunchColumnSums(stream, from.data(), rows, sums.data());
      stream.Wait();
      ASSERT_EQ(ToHost(sums), expected) << rows;
    }
  }
}

TEST(KernelTest, TheLastBlockSeesWhatAllOthersWrote) {
  constexpr int kBlocks = 40;
  std::vector<int> x(kBlocks * 256);
  int expected = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<int>(i * 7919 % 1000);
    expected += x[i];
  }
  const Array<int> from = ToDevice(x);
  const Array<int> partial = Unwritten<int>(kBlocks);
  const Array<int> counter = ToDevice<int>({0});
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    ShuffleThreads(seed);
    const Array<int> sum = Unwritten<int>(1);
    Stream stream;
    LaunchSumOfBlocks(stream, from.data(), kBlocks, partial.data(),
                      counter.data(), sum.data());
    stream.Wait();
    ASSERT_EQ(ToHost(sum)[0], expected);
    ASSERT_EQ(ToHost(counter)[0], 0);
  }
}

}  // namespace
}  // namespace txl::cuda
