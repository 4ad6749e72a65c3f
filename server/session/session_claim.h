#pragma once

// What a server's copy of a shared session is a copy of, and whether it still
// is the session: docs/design/sessions.md.

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace txl {

// A copy whose session moved away or was deleted is permanently invalid.
struct SessionClaim {
  static constexpr int64_t kHere = -1;
  static constexpr int64_t kGone = -2;  // deleted

  // Read by anybody, set by the journal before it says that the entry which
  // found out is on stable storage. From 0 on: the session's true position.
  std::atomic<int64_t> moved_to{kHere};
  // BootTime in nanoseconds when a confirmed change, or touch, was sent.
  std::atomic<int64_t> confirmed{0};

  bool moved() const {
    return moved_to.load(std::memory_order_acquire) != kHere;
  }
  // No other server can have come to own the session before `now` less `limit`.
  bool Confirmed(absl::Duration now, absl::Duration limit) const {
    return now - absl::Nanoseconds(confirmed.load(std::memory_order_acquire)) <
           limit;
  }

  // The journal's own: the last change that it knows of or has sent.
  struct Version {
    std::string epoch;
    std::string nonce;
    int64_t position = 0;
    std::string chain;
    std::string born;
    absl::Duration ttl;
    absl::Time create_time;
    bool owned = false;  // and neither ended nor released since
    bool runs = false;   // a turn has begun and not ended
  };
  Version version;
};

}  // namespace txl
