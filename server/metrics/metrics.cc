#include "server/metrics/metrics.h"

namespace txl {

void Metrics::Update(absl::FunctionRef<void(Snapshot&)> change) {
  absl::MutexLock lock(&mutex_);
  change(values_);
}

Snapshot Metrics::Get() const {
  absl::MutexLock lock(&mutex_);
  return values_;
}

}  // namespace txl
