#include "client/bench/measure/timeline.h"

#include <gtest/gtest.h>

namespace txl::bench {
namespace {

constexpr Nanos kBin = Timeline::kBin;

TEST(ATimeline, CountsTokensInTheBinOfTheirTime) {
  Timeline timeline;
  timeline.Add(0, 1);
  timeline.Add(kBin - 1, 2);
  timeline.Add(kBin, 4);
  timeline.Add(3 * kBin + 5, 8);
  timeline.Add(-7, 16);  // before the start
  EXPECT_EQ(timeline.bins(), (std::vector<int64_t>{19, 4, 0, 8}));
}

TEST(ATimeline, SumsTheBinsThatBeginWithin) {
  Timeline timeline;
  for (int64_t i = 0; i < 10; ++i) timeline.Add(i * kBin, int64_t{1} << i);
  EXPECT_EQ(timeline.Between(0, 10 * kBin), 1023);
  EXPECT_EQ(timeline.Between(2 * kBin, 4 * kBin), 4 + 8);
  EXPECT_EQ(timeline.Between(2 * kBin - 1, 4 * kBin + 1), 4 + 8 + 16);
  EXPECT_EQ(timeline.Between(5 * kBin, 5 * kBin), 0);
  EXPECT_EQ(timeline.Between(7 * kBin, 3 * kBin), 0);
  EXPECT_EQ(timeline.Between(0, 1000 * kBin), 1023);
}

TEST(ATimeline, MergesBinByBin) {
  Timeline a;
  a.Add(0, 1);
  Timeline b;
  b.Add(0, 2);
  b.Add(2 * kBin, 3);
  a.Merge(b);
  EXPECT_EQ(a.bins(), (std::vector<int64_t>{3, 0, 3}));
  b.Merge(Timeline());
  EXPECT_EQ(b.bins(), (std::vector<int64_t>{2, 0, 3}));
}

}  // namespace
}  // namespace txl::bench
