#include "model/cuda/step/cuda_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cuda/kernels/linear.h"

namespace txl::cuda {
namespace {

TEST(CudaShapeTest, EveryWidthIsPaddedByItself) {
  ModelConfig config;
  config.n_layer = 3;
  config.n_head = 10;
  config.d_head = 41;
  config.d_model = 410;
  config.d_inner = 2100;
  config.mem_len = 640;
  const CudaShape shape = MakeCudaShape(config);
  EXPECT_EQ(shape.layers, 3);
  EXPECT_EQ(shape.width, 410);
  EXPECT_EQ(shape.stride, 448);
  EXPECT_EQ(shape.head_stride, 64);
  EXPECT_EQ(shape.query_stride(), 640);
  EXPECT_EQ(shape.inner_stride, 2112);
  EXPECT_EQ(shape.distances, 641);  // the token itself is at distance 0
  EXPECT_EQ(shape.distance_stride, 704);
}

TEST(CudaShapeTest, ClampedDistancesShareTheFarthest) {
  ModelConfig config;
  config.mem_len = 640;
  config.clamp_len = 400;
  EXPECT_EQ(MakeCudaShape(config).distances, 401);
  config.window = 100;
  EXPECT_EQ(MakeCudaShape(config).distances, 100);
}

TEST(CudaShapeTest, WidthsAreRoundedUpToUnits) {
  EXPECT_EQ(PaddedWidth(1), 64);
  EXPECT_EQ(PaddedWidth(64), 64);
  EXPECT_EQ(PaddedWidth(65), 128);
  EXPECT_EQ(PaddedWidth(267735), 267776);
}

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
