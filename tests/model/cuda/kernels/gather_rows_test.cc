#include <gtest/gtest.h>

#include <vector>

#include "model/cuda/kernels/rows.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

template <typename T>
std::vector<T> Numbers(int64_t size) {
  std::vector<T> numbers(size);
  for (int64_t i = 0; i < size; ++i) {
    numbers[i] = Narrow<T>(static_cast<float>(i % 2003) / 7);
  }
  return numbers;
}

template <typename T>
class GatherRowsTest : public ::testing::Test {};
using Formats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(GatherRowsTest, Formats);

TYPED_TEST(GatherRowsTest, PicksRowsInAnyOrderAndTwice) {
  using T = TypeParam;
  constexpr int64_t kStride = 320;
  const std::vector<int32_t> index = {4, 0, 4, 2, 1};
  const std::vector<T> from = Numbers<T>(5 * kStride);
  const Array<T> from_there = ToDevice(from);
  const Array<int32_t> index_there = ToDevice(index);
  const Array<T> to =
      Unwritten<T>(static_cast<int64_t>(index.size()) * kStride);
  Stream stream;
  LaunchGatherRows<T>(stream, {from_there.data(),
                               kStride,
                               index_there.data(),
                               static_cast<int>(index.size()),
                               {},
                               to.data()});
  stream.Wait();
  const std::vector<T> picked = ToHost(to);
  for (size_t r = 0; r < index.size(); ++r) {
    for (int64_t k = 0; k < kStride; ++k) {
      EXPECT_EQ(Widen(picked[r * kStride + k]),
                Widen(from[index[r] * kStride + k]));
    }
  }
}

TYPED_TEST(GatherRowsTest, LeavesRowsOutsideOfARangeAlone) {
  using T = TypeParam;
  constexpr int64_t kStride = 64;
  // Indices outside of the range may be anything.
  const std::vector<int32_t> index = {-7, 1, 0, 1 << 30};
  const std::vector<T> from = Numbers<T>(2 * kStride);
  const Array<T> from_there = ToDevice(from);
  const Array<int32_t> index_there = ToDevice(index);
  const Array<int32_t> range = ToDevice<int32_t>({1, 3});
  const Array<T> to = Unwritten<T>(4 * kStride);
  Stream stream;
  LaunchGatherRows<T>(stream, {from_there.data(),
                               kStride,
                               index_there.data(),
                               4,
                               {range.data(), range.data() + 1},
                               to.data()});
  stream.Wait();
  const std::vector<T> picked = ToHost(to);
  for (int64_t i = 0; i < 4 * kStride; ++i) {
    const int64_t r = i / kStride;
    const float found = Widen(picked[i]);
    if (r == 0 || r == 3) {
      EXPECT_NE(found, found);  // NaN, as before
    } else {
      EXPECT_EQ(found, Widen(from[index[r] * kStride + i % kStride]));
    }
  }
}

template <typename T>
class NarrowTest : public ::testing::Test {};
using HalfFormats = ::testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(NarrowTest, HalfFormats);

TYPED_TEST(NarrowTest, RoundsEveryNumber) {
  using T = TypeParam;
  for (const int64_t count : {64, 512, 704}) {
    const std::vector<float> from = Numbers<float>(count);
    const Array<float> from_there = ToDevice(from);
    const Array<T> to = Unwritten<T>(count);
    Stream stream;
    LaunchNarrow(stream, from_there.data(), count, to.data());
    stream.Wait();
    const std::vector<T> rounded = ToHost(to);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(Widen(rounded[i]), Widen(Narrow<T>(from[i])));
    }
  }
}

}  // namespace
}  // namespace txl::cuda
