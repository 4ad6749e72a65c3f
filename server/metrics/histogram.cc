#include "server/metrics/histogram.h"

#include <algorithm>

namespace txl {

void Histogram::Observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[bound - bounds_.begin()];
  ++count_;
  sum_ += value;
}

void Histogram::Add(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
}

int64_t Histogram::AtMost(size_t i) const {
  int64_t count = 0;
  for (size_t j = 0; j <= i; ++j) count += counts_[j];
  return count;
}

}  // namespace txl
