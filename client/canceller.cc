#include "client/canceller.h"

#include <grpcpp/client_context.h>

namespace txl {

void Canceller::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
}

bool Canceller::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

bool Canceller::WaitFor(absl::Duration time) const {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), time);
}

Canceller::Scope::Scope(Canceller* canceller, grpc::ClientContext* context)
    : canceller_(canceller), context_(context) {
  if (canceller_ == nullptr) return;
  absl::MutexLock lock(&canceller_->mutex_);
  canceller_->calls_.insert(context_);
  // A call that has not started yet is ended by gRPC at its start.
  if (canceller_->cancelled_) context_->TryCancel();
}

Canceller::Scope::~Scope() {
  if (canceller_ == nullptr) return;
  absl::MutexLock lock(&canceller_->mutex_);
  canceller_->calls_.erase(context_);
}

}  // namespace txl
