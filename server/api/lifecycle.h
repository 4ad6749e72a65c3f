#pragma once

// What the server as a whole is doing, as every call sees it.

#include <atomic>

#include "absl/status/status.h"
#include "server/metrics/server_status.h"

namespace txl {

// Thread-safe. Phases only go forward.
class Lifecycle {
 public:
  ServerPhase phase() const { return phase_.load(std::memory_order_acquire); }
  // No effect once draining.
  void SetReady();
  void SetDraining();
  // UNAVAILABLE with NOT_READY or DRAINING; OK when ready.
  absl::Status CheckServing() const;

 private:
  std::atomic<ServerPhase> phase_{ServerPhase::kStarting};
};

}  // namespace txl
