#include "server/metrics/histogram.h"

#include <algorithm>

namespace txl {

void Histogram::Observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[bound - bounds_.begin()];
  ++count_;
  sum_ += value;
}

int64_t Histogram::AtMost(size_t i) const {
  int64_t count = 0;
  for (size_t j = 0; j <= i; ++j) count += counts_[j];
  return count;
}

}  // namespace txl
