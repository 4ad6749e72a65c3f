#include "tests/model/cuda/kernels/attention_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr float kUntouched = 77;
constexpr float kScale = 0.25f;

int64_t Mod(int64_t a, int64_t b) { return ((a % b) + b) % b; }

int64_t Oldest(const AttentionShape& shape, int row) {
  return std::max(shape.positions[row] - shape.window + 1,
                  shape.first_position);
}

// Half of the distance between 1 and the next number.
template <typename T>
double Rounding();
template <>
double Rounding<float>() {
  return 0x1p-24;
}
template <>
double Rounding<Bf16>() {
  return 0x1p-8;
}
template <>
double Rounding<F16>() {
  return 0x1p-11;
}

}  // namespace

template <typename Q, typename M>
AttentionCase<Q, M>::AttentionCase(const AttentionShape& shape)
    : shape_(shape), count_(static_cast<int>(shape.slots.size())) {
  std::mt19937 random(shape.seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const int slots =
      1 + *std::max_element(shape.slots.begin(), shape.slots.end());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  rings_.assign(std::max(slots, 1) * shape.capacity * shape.stride,
                Narrow<M>(nan));
  for (int r = 0; r < count_; ++r) {
    if (shape.slots[r] < 0) continue;
    for (int64_t t = Oldest(shape, r); t <= shape.positions[r]; ++t) {
      M* row = const_cast<M*>(RowAt(r, t));
      for (int64_t k = 0; k < shape.stride; ++k) {
        row[k] = Narrow<M>(k < shape.width ? uniform(random) : 0);
      }
    }
  }
  // Large enough that some positions count much more than others.
  const float large = 8 / std::sqrt(static_cast<float>(shape.width));
  for (int64_t i = 0; i < count_ * shape.heads * shape.stride; ++i) {
    const float x = large * uniform(random);
    queries_.push_back(Narrow<Q>(i % shape.stride < shape.width ? x : 0));
  }
  for (int i = 0; i < count_ * shape.heads * (shape.distances + 3); ++i) {
    positions_.push_back(i % (shape.distances + 3) < shape.distances
                             ? shape.position_range * uniform(random)
                             : nan);
  }
}

template <typename Q, typename M>
const M* AttentionCase<Q, M>::RowAt(int row, int64_t position) const {
  return rings_.data() + (shape_.slots[row] * shape_.capacity +
                          Mod(position, shape_.capacity)) *
                             shape_.stride;
}

template <typename Q, typename M>
std::vector<Q> AttentionCase<Q, M>::RunWithSlots(
    const std::vector<int32_t>& slots_of_rows) const {
  const int64_t parts = int64_t{count_} * shape_.splits * shape_.heads;
  const Array<int32_t> slots = ToDevice(slots_of_rows);
  const Array<int64_t> rows = ToDevice(shape_.positions);
  const Array<M> rings = ToDevice(rings_);
  const Array<Q> queries = ToDevice(queries_);
  const Array<float> positions = ToDevice(positions_);
  const auto partial = Unwritten<float>(parts * shape_.stride);
  const auto maxima = Unwritten<float>(parts);
  const auto sums = Unwritten<float>(parts);
  const Array<Q> out =
      ToDevice(std::vector<Q>(queries_.size(), Narrow<Q>(kUntouched)));
  AttentionArgs<Q, M> args;
  args.rows = {count_, slots.data(), rows.data()};
  args.rings.rows = rings.data();
  args.rings.slot_stride = shape_.capacity * shape_.stride;
  args.rings.capacity = shape_.capacity;
  args.rings.stride = shape_.stride;
  args.rings.window = shape_.window;
  args.rings.first_position = shape_.first_position;
  args.heads = shape_.heads;
  args.scale = kScale;
  args.queries = queries.data();
  args.positions = positions.data();
  args.position_stride = shape_.distances + 3;
  args.distances = shape_.distances;
  args.splits = shape_.splits;
  args.partial = partial.data();
  args.maxima = maxima.data();
  args.sums = sums.data();
  args.out = out.data();
  args.shared_bytes =
      std::min(shape_.shared_bytes, CurrentDevice().shared_bytes);
  Stream stream;
  LaunchAttention(stream, args);
  stream.Wait();
  return ToHost(out);
}

template <typename Q, typename M>
AttentionResult AttentionCase<Q, M>::Expected(int row, int head) const {
  const int64_t newest = shape_.positions[row];
  const int64_t oldest = Oldest(shape_, row);
  const int64_t at = int64_t{row} * shape_.heads + head;
  std::vector<double> weights;
  double largest_terms = 0;
  for (int64_t t = oldest; t <= newest; ++t) {
    const int64_t distance =
        std::min<int64_t>(newest - t, shape_.distances - 1);
    double score = positions_[at * (shape_.distances + 3) + distance];
    double terms = std::abs(score);
    for (int64_t k = 0; k < shape_.width; ++k) {
      const double term =
          static_cast<double>(Widen(queries_[at * shape_.stride + k])) *
          Widen(RowAt(row, t)[k]);
      score += term;
      terms += std::abs(term);
    }
    weights.push_back(score * kScale);
    largest_terms = std::max(largest_terms, terms * kScale);
  }
  const double maximum = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - maximum);
  // How wrong a weight may be: what float32 sums of so many terms may lose, in
  // the row's score and in the maximum's; the exponential; and, on tensor
  // cores, being rounded to M. Only weights' errors against each other count.
  const double terms = static_cast<double>(shape_.width) + 64;
  const double relative = 2 * terms * 0x1p-24 * largest_terms + 0x1p-20 +
                          (sizeof(Q) == sizeof(float) ? 0 : Rounding<M>());
  AttentionResult result;
  for (int64_t k = 0; k < shape_.width; ++k) {
    const auto value = [&](int64_t t) {
      return static_cast<double>(Widen(RowAt(row, t)[k]));
    };
    double out = 0;
    for (int64_t t = oldest; t <= newest; ++t) {
      out += weights[t - oldest] / sum * value(t);
    }
    double spread = 0;
    for (int64_t t = oldest; t <= newest; ++t) {
      spread += weights[t - oldest] / sum * std::abs(value(t) - out);
    }
    result.out.push_back(out);
    result.allowed.push_back(relative * spread + 0x1p-20 +
                             Rounding<Q>() * std::abs(out));
  }
  return result;
}

template <typename Q, typename M>
void ExpectAttention(const AttentionShape& shape) {
  const AttentionCase<Q, M> attention(shape);
  const std::vector<Q> out = attention.Run();
  const int count = static_cast<int>(shape.slots.size());
  for (int i = 0; i < count * shape.heads; ++i) {
    const int row = i / shape.heads;
    const Q* at = out.data() + i * shape.stride;
    if (shape.slots[row] < 0) {
      for (int64_t k = 0; k < shape.stride; ++k) {
        ASSERT_EQ(Widen(at[k]), kUntouched);
      }
      continue;
    }
    const AttentionResult expected = attention.Expected(row, i % shape.heads);
    for (int64_t k = 0; k < shape.width; ++k) {
      ASSERT_NEAR(Widen(at[k]), expected.out[k], expected.allowed[k])
          << "row " << row << " head " << i % shape.heads << " column " << k;
    }
    for (int64_t k = shape.width; k < shape.stride; ++k) {
      ASSERT_EQ(Widen(at[k]), 0);
    }
  }
  ShuffleThreads(static_cast<uint64_t>(shape.seed) + 1000);
  const std::vector<Q> again = attention.Run();
  EXPECT_EQ(std::memcmp(out.data(), again.data(), out.size() * sizeof(Q)), 0);
}

#define TXL_ATTENTION_CASE(Q, M)      \
  template class AttentionCase<Q, M>; \
  template void ExpectAttention<Q, M>(const AttentionShape&);
TXL_ATTENTION_CASE(float, float)
TXL_ATTENTION_CASE(float, Bf16)
TXL_ATTENTION_CASE(float, F16)
TXL_ATTENTION_CASE(Bf16, Bf16)
TXL_ATTENTION_CASE(F16, F16)

}  // namespace txl::cuda
