#include "model/cuda/device/launch_shape.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/model/cuda/device/device_kernels.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr int64_t kElements = 100'000;

class LaunchShapeTest : public ::testing::Test {
 protected:
  LaunchShapeTest() {
    numbers_.resize(kElements);
    std::iota(numbers_.begin(), numbers_.end(), 0);
    from_ = ToDevice(numbers_);
    to_ = Unwritten<int>(kElements);
  }

  void Launch(const LaunchShape& shape) {
    LaunchAddOne(stream_, shape, from_.data(), to_.data(), kElements);
  }
  void ExpectOneMoreEverywhere() {
    stream_.Wait();
    const std::vector<int> found = ToHost(to_);
    for (int64_t i = 0; i < kElements; ++i)
      ASSERT_EQ(found[i], numbers_[i] + 1);
  }

  std::vector<int> numbers_;
  Array<int> from_, to_;
  Stream stream_;
};

TEST_F(LaunchShapeTest, AnyNumberOfWarpsAndBlocksRuns) {
  for (const LaunchShape& shape :
       {LaunchShape{}, LaunchShape{{1}, 1024}, LaunchShape{{391}, 256},
        LaunchShape{{7}, 96}}) {
    ASSERT_EQ(ShapeError(shape), nullptr);
    stream_.Fill(to_.data(), 0xff, to_.bytes());
    Launch(shape);
    ExpectOneMoreEverywhere();
  }
}

TEST_F(LaunchShapeTest, ABlockMayHaveAsMuchSharedMemoryAsTheDeviceSays) {
  Launch({{4}, 64, CurrentDevice().shared_bytes});
  ExpectOneMoreEverywhere();
}

TEST_F(LaunchShapeTest, AShapeThatCannotBeIsRefusedAndTheNextOneRuns) {
  const std::vector<LaunchShape> impossible = {
      {{0}, 32},           {{1, 0}, 32}, {{1, 1, -1}, 32}, {{1, 65536}, 32},
      {{1, 1, 65536}, 32}, {{1}, 0},     {{1}, 31},        {{1}, 1056},
  };
  for (const LaunchShape& shape : impossible) {
    EXPECT_NE(ShapeError(shape), nullptr);
    EXPECT_THROW(Launch(shape), DeviceError);
  }
  EXPECT_THROW(Launch({{1}, 32, CurrentDevice().shared_bytes + 1}),
               DeviceError);
  Launch({{4}, 128});
  ExpectOneMoreEverywhere();
}

}  // namespace
}  // namespace txl::cuda
