#pragma once

// What the server as a whole is doing, as every call sees it.

#include <atomic>

#include "absl/status/status.h"

namespace txl {

enum class ServerPhase {
  kStarting,  // no step has run yet
  kReady,     // serving
  kDraining,  // shutting down; never leaves this
};

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
