#include "server/metrics/metrics.h"

#include <algorithm>

namespace txl {

void Metrics::Update(absl::FunctionRef<void(Snapshot&)> change) {
  absl::MutexLock lock(&mutex_);
  change(values_);
}

int32_t Metrics::AddTenant(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  values_.tenants.emplace_back().tenant = name;
  return static_cast<int32_t>(values_.tenants.size()) - 1;
}

Snapshot Metrics::Get() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot = values_;
  snapshot.stream_queue_tokens =
      stream_queue_tokens_.load(std::memory_order_relaxed);
  return snapshot;
}

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
