#include "tests/bench/machine_peaks.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

// How fast the machine is cannot be tested; that something was measured can.
TEST(MachinePeaksTest, RatesAreMeasuredWithAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    EXPECT_GT(ReadBandwidth(1 << 20, 2, pool), 1e8) << threads;
    EXPECT_GT(FmaPeak(1, pool), 1e8) << threads;
  }
}

TEST(MachinePeaksTest, FootprintsAscendToTheMemorySize) {
  PeakOptions options = {.memory_bytes = 5 << 20, .passes = 1};
  const MachinePeaks peaks = MeasurePeaks(options);
  ASSERT_EQ(peaks.by_footprint.size(), 4u);  // 1, 2, 4, 5 MiB
  EXPECT_EQ(peaks.by_footprint[1].x, 2 << 20);
  EXPECT_EQ(peaks.by_footprint[3].x, 5 << 20);
  EXPECT_EQ(peaks.read_bytes_per_second, peaks.by_footprint[3].y);
  EXPECT_EQ(peaks.threads, 1);
  EXPECT_FALSE(peaks.vector_target.empty());
}

TEST(MachinePeaksTest, WorkMeetsTheRateOfItsFootprint) {
  MachinePeaks peaks;
  peaks.read_bytes_per_second = 40;
  EXPECT_EQ(peaks.ReadRate(5), 40);
  peaks.by_footprint = {{1, 100}, {10, 60}, {100, 40}};
  EXPECT_EQ(peaks.ReadRate(10), 60);
  EXPECT_EQ(peaks.ReadRate(1000), 40);
}

}  // namespace
}  // namespace txl
