#pragma once

// Ends running calls from another thread.

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace grpc {
class ClientContext;
}

namespace txl {

// Thread-safe. Once cancelled it stays so: calls that are started with it later
// end at once with CANCELLED. Outlives the calls that it was given to.
class Canceller {
 public:
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits so long, or until it is cancelled; cancelled().
  bool WaitFor(absl::Duration time) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Puts a call under the canceller's control while it lives; a null canceller
  // is fine.
  class Scope {
   public:
    Scope(Canceller* canceller, grpc::ClientContext* context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Canceller* canceller_;
    grpc::ClientContext* context_;
  };

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
