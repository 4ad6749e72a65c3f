#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "model/cuda/kernels/rows.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr int kRows = 3;
constexpr int64_t kWidth = 320;
constexpr int64_t kStride = 192;
constexpr int64_t kCapacity = 32;

// Multiples of 1/8 below 32: sums of a few are exact in any order.
std::vector<float> Draw(int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(size);
  for (float& x : numbers) {
    x = (static_cast<float>(random() % 512) - 256) / 8;
  }
  return numbers;
}

// Formats: of the queries, of the stored rows.
template <typename Formats>
class QueriesTest : public ::testing::Test {
 protected:
  using T = typename std::tuple_element<0, Formats>::type;
  using M = typename std::tuple_element<1, Formats>::type;

  // Rows at positions 5 and 6 of slot 1; the last one does not exist.
  void Run(int splits) {
    partial_ = Draw(splits * kRows * kWidth, splits);
    const Array<float> partial = ToDevice(partial_);
    const Array<float> x = ToDevice(x_);
    const Array<T> queries = Unwritten<T>(kRows * kWidth);
    const Array<M> ring = Unwritten<M>(2 * kCapacity * kStride);
    const Array<int32_t> slots = ToDevice<int32_t>({1, 1, -1});
    const Array<int64_t> positions = ToDevice<int64_t>({5, 6, 7});
    QueryArgs<T> args;
    args.width = kWidth;
    args.partial = partial.data();
    args.splits = splits;
    args.queries = queries.data();
    StoreArgs<M> store = {
        {kRows, slots.data(), positions.data()}, x.data(), kStride, {}};
    store.rings.rows = ring.data();
    store.rings.slot_stride = kCapacity * kStride;
    store.rings.capacity = kCapacity;
    store.rings.stride = kStride;
    Stream stream;
    LaunchQueries(stream, args, store);
    stream.Wait();
    queries_ = ToHost(queries);
    ring_ = ToHost(ring);
  }

  const std::vector<float> x_ = Draw(kRows * kStride, 9);
  std::vector<float> partial_;
  std::vector<T> queries_;
  std::vector<M> ring_;
};
using Pairs =
    ::testing::Types<std::tuple<float, float>, std::tuple<float, Bf16>,
                     std::tuple<Bf16, Bf16>, std::tuple<Bf16, float>,
                     std::tuple<F16, F16>, std::tuple<F16, Bf16>>;
TYPED_TEST_SUITE(QueriesTest, Pairs);

TYPED_TEST(QueriesTest, AreTheRoundedSumsOfTheirPieces) {
  using T = typename TestFixture::T;
  for (const int splits : {1, 2, 5}) {
    this->Run(splits);
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      float q = 0;
      for (int s = 0; s < splits; ++s) {
        q += this->partial_[s * kRows * kWidth + i];
      }
      EXPECT_EQ(Widen(this->queries_[i]), Widen(Narrow<T>(q)));
    }
  }
}

TYPED_TEST(QueriesTest, ComeWithTheRowsStored) {
  using M = typename TestFixture::M;
  this->Run(2);
  for (size_t i = 0; i < this->ring_.size(); ++i) {
    const float found = Widen(this->ring_[i]);
    const int64_t r = static_cast<int64_t>(i) / kStride - (kCapacity + 5);
    if (r < 0 || r > 1) {
      EXPECT_TRUE(std::isnan(found)) << i;
    } else {
      const float x = this->x_[r * kStride + static_cast<int64_t>(i) % kStride];
      EXPECT_EQ(found, Widen(Narrow<M>(x)));
    }
  }
}

}  // namespace
}  // namespace txl::cuda
