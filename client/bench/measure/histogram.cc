#include "client/bench/measure/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace txl::bench {
namespace {

// A value's highest bits, this one included, choose its bucket.
constexpr int kBits = 9;
constexpr int64_t kExact = int64_t{1} << kBits;  // values below: a bucket each
constexpr int64_t kPerDoubling = kExact / 2;

}  // namespace

int64_t Histogram::IndexOf(Nanos value) {
  if (value < kExact) return value;
  const int shift = std::bit_width(static_cast<uint64_t>(value)) - kBits;
  return kPerDoubling * shift + (value >> shift);
}

Nanos Histogram::LowerEnd(int64_t index) {
  if (index < kExact) return index;
  const int64_t shift = index / kPerDoubling - 1;
  return (index - kPerDoubling * shift) << shift;
}

Nanos Histogram::Width(int64_t index) {
  return index < kExact ? 1 : Nanos{1} << (index / kPerDoubling - 1);
}

void Histogram::Add(Nanos value, int64_t times) {
  if (times <= 0) return;
  value = std::max<Nanos>(0, value);
  const int64_t index = IndexOf(value);
  if (index >= static_cast<int64_t>(buckets_.size())) {
    buckets_.resize(index + 1);
  }
  buckets_[index] += times;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  count_ += times;
  sum_ += static_cast<double>(value) * static_cast<double>(times);
}

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  if (other.buckets_.size() > buckets_.size()) {
    buckets_.resize(other.buckets_.size());
  }
  for (size_t i = 0; i < other.buckets_.size(); ++i) {
    buckets_[i] += other.buckets_[i];
  }
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

Nanos Histogram::Percentile(double q) const {
  const auto rank = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(q * static_cast<double>(count_))), 1,
      std::max<int64_t>(1, count_));
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) {
      const auto index = static_cast<int64_t>(i);
      return std::min(max_, LowerEnd(index) + Width(index) - 1);
    }
  }
  return 0;
}

}  // namespace txl::bench
