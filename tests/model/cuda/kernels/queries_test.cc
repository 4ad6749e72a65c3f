#include "model/cuda/kernels/queries.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

// Multiples of 1/8 below 32: sums of a few are exact in any order.
std::vector<float> Draw(int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(size);
  for (float& x : numbers) {
    x = (static_cast<float>(random() % 512) - 256) / 8;
  }
  return numbers;
}

template <typename T>
class QueriesTest : public ::testing::Test {};
using Formats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(QueriesTest, Formats);

TYPED_TEST(QueriesTest, AreTheSumOfPiecesWithEachBias) {
  using T = TypeParam;
  constexpr int kRows = 3;
  constexpr int64_t kWidth = 320;
  for (const int splits : {1, 2, 5}) {
    const std::vector<float> partial = Draw(splits * kRows * kWidth, splits);
    const std::vector<float> content_bias = Draw(kWidth, 11);
    const std::vector<float> position_bias = Draw(kWidth, 12);
    const Array<float> partial_there = ToDevice(partial);
    const Array<float> content_there = ToDevice(content_bias);
    const Array<float> position_there = ToDevice(position_bias);
    const Array<T> content = Unwritten<T>(kRows * kWidth);
    const Array<T> positional = Unwritten<T>(kRows * kWidth);
    QueryArgs<T> args;
    args.rows = kRows;
    args.width = kWidth;
    args.partial = partial_there.data();
    args.splits = splits;
    args.content_bias = content_there.data();
    args.position_bias = position_there.data();
    args.content = content.data();
    args.positional = positional.data();
    Stream stream;
    LaunchQueries(stream, args);
    stream.Wait();
    const std::vector<T> u = ToHost(content);
    const std::vector<T> v = ToHost(positional);
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      double q = 0;
      for (int s = 0; s < splits; ++s) q += partial[s * kRows * kWidth + i];
      const auto rounded = [](double x) {
        return Widen(Narrow<T>(static_cast<float>(x)));
      };
      EXPECT_EQ(Widen(u[i]), rounded(q + content_bias[i % kWidth]));
      EXPECT_EQ(Widen(v[i]), rounded(q + position_bias[i % kWidth]));
    }
  }
}

}  // namespace
}  // namespace txl::cuda
