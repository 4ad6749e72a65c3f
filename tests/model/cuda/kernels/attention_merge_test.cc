#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "model/cuda/kernels/attention.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

// Parts of `splits` splits: numbers that differ in row, split, head and column.
// Every third split is empty and was not written.
struct Parts {
  int count = 2;
  int splits = 1;
  int heads = 3;
  int64_t stride = 192;

  int Index(int row, int split, int head) const {
    return (row * splits + split) * heads + head;
  }
  static bool Empty(int split) { return split % 3 == 1; }
  static float Maximum(int part) { return static_cast<float>(part % 7) - 3; }
  static float Sum(int part) { return 1 + static_cast<float>(part % 5) / 4; }
  static float Number(int part, int64_t column) {
    return static_cast<float>((part * 13 + column) % 32) / 8 - 2;
  }

  template <typename Q>
  std::vector<Q> Merge(const std::vector<int32_t>& slots) const;
  double Expected(int row, int head, int64_t column) const;
};

template <typename Q>
std::vector<Q> Parts::Merge(const std::vector<int32_t>& slots) const {
  const int parts = count * splits * heads;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> partial(parts * stride, nan);
  std::vector<float> maxima(parts, -std::numeric_limits<float>::infinity());
  std::vector<float> sums(parts, 0);
  for (int part = 0; part < parts; ++part) {
    if (Empty(part / heads % splits)) continue;
    maxima[part] = Maximum(part);
    sums[part] = Sum(part);
    for (int64_t k = 0; k < stride; ++k) {
      partial[part * stride + k] = Number(part, k);
    }
  }
  const auto slots_there = ToDevice(slots);
  const auto partial_there = ToDevice(partial);
  const auto maxima_there = ToDevice(maxima);
  const auto sums_there = ToDevice(sums);
  const auto out =
      ToDevice(std::vector<Q>(count * heads * stride, Narrow<Q>(77)));
  Stream stream;
  LaunchMergeParts(
      stream, MergeArgs<Q>{count, slots_there.data(), splits, heads, stride,
                           partial_there.data(), maxima_there.data(),
                           sums_there.data(), out.data()});
  stream.Wait();
  return ToHost(out);
}

double Parts::Expected(int row, int head, int64_t column) const {
  double sum = 0;
  double weights = 0;
  for (int s = 0; s < splits; ++s) {
    if (Empty(s)) continue;
    const int part = Index(row, s, head);
    const double scale = std::exp2(Maximum(part));
    sum += scale * Number(part, column);
    weights += scale * Sum(part);
  }
  return sum / weights;
}

template <typename Q>
class AttentionMergeTest : public ::testing::Test {};
using MergedFormats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(AttentionMergeTest, MergedFormats);

// Fewer and more splits than a block has warps and a warp has lanes.
TYPED_TEST(AttentionMergeTest, PartsAreWeighedByTheirMaximaAndSums) {
  const double rounding = sizeof(TypeParam) == 4 ? 0x1p-20 : 0x1p-8;
  for (const int splits : {2, 5, 8, 40, 65}) {
    Parts parts;
    parts.splits = splits;
    const std::vector<TypeParam> out = parts.Merge<TypeParam>({0, 5});
    for (size_t i = 0; i < out.size(); ++i) {
      const int row = static_cast<int>(i / parts.stride / parts.heads);
      const int head = static_cast<int>(i / parts.stride % parts.heads);
      const double expected =
          parts.Expected(row, head, static_cast<int64_t>(i) % parts.stride);
      ASSERT_NEAR(Widen(out[i]), expected, rounding * (1 + std::abs(expected)))
          << splits << " splits, number " << i;
    }
    ShuffleThreads(splits);
    const std::vector<TypeParam> again = parts.Merge<TypeParam>({0, 5});
    EXPECT_EQ(
        std::memcmp(out.data(), again.data(), out.size() * sizeof(TypeParam)),
        0);
  }
}

TYPED_TEST(AttentionMergeTest, RowsWithoutSlotAreLeftAlone) {
  Parts parts;
  parts.splits = 3;
  const std::vector<TypeParam> out = parts.Merge<TypeParam>({-1, 0});
  const size_t row = parts.heads * parts.stride;
  for (size_t i = 0; i < row; ++i) EXPECT_EQ(Widen(out[i]), 77);
  EXPECT_LT(std::abs(Widen(out[row])), 3);
}

}  // namespace
}  // namespace txl::cuda
