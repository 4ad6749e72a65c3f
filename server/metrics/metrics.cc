#include "server/metrics/metrics.h"

namespace txl {

void Metrics::Update(absl::FunctionRef<void(Snapshot&)> change) {
  absl::MutexLock lock(&mutex_);
  change(values_);
}

Snapshot Metrics::Get() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot = values_;
  snapshot.stream_queue_tokens =
      stream_queue_tokens_.load(std::memory_order_relaxed);
  return snapshot;
}

}  // namespace txl
