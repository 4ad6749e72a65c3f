#include "model/cuda/step/step_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cuda/kernels/linear.h"

namespace txl::cuda {
namespace {

using ::testing::ElementsAre;

TEST(StepBucketsTest, DoubleAtFirstThenGrowBySteps) {
  EXPECT_THAT(StepBuckets(1), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(StepBuckets(16), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(StepBuckets(40), ElementsAre(1, 2, 4, 8, 16, 32, 48));
  EXPECT_THAT(StepBuckets(192), ElementsAre(1, 2, 4, 8, 16, 32, 48, 64, 80, 96,
                                            112, 128, 160, 192));
}

// Memory for rows is there for a multiple of kLinearRows of them.
TEST(StepBucketsTest, TheLastHoldsAllRowsInWholeGroups) {
  for (int64_t rows = 1; rows < 700; ++rows) {
    const int last = StepBuckets(rows).back();
    EXPECT_GE(last, rows);
    EXPECT_EQ(last % kLinearRows, 0);
  }
}

TEST(StepBucketsTest, AStepTakesTheSmallestThatHoldsIt) {
  const std::vector<int> buckets = StepBuckets(200);
  for (int64_t rows = 1; rows <= buckets.back(); ++rows) {
    const size_t bucket = BucketOf(buckets, rows);
    EXPECT_GE(buckets[bucket], rows);
    if (bucket > 0) {
      EXPECT_LT(buckets[bucket - 1], rows);
    }
  }
}

}  // namespace
}  // namespace txl::cuda
