#pragma once

// Sheds new work while the process holds nearly all the memory that it may:
// the last guard, for what no budget counts.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "server/base/periodic.h"

namespace txl {

// Bytes of this process that are in memory (proc(5), statm); 0 where the
// system does not say.
int64_t ResidentBytes();

// Whether to shed with so many resident bytes: from above 95 % of the limit
// until below 93 %.
bool ShouldShed(bool shedding, int64_t resident, int64_t limit);

struct MemoryGuardOptions {
  int64_t limit = 0;  // bytes, > 0
  absl::Duration interval = absl::Milliseconds(100);
  std::function<int64_t()> resident = ResidentBytes;
  // Gives what the heap holds unused back to the system. Called before work is
  // shed, and once a second or so while it is.
  std::function<void()> trim;  // null: malloc_trim
};

// Samples from a thread of its own. Thread-safe.
class MemoryGuard {
 public:
  explicit MemoryGuard(MemoryGuardOptions options);

  int64_t limit() const { return options_.limit; }
  // What the last sample found.
  int64_t resident_bytes() const {
    return resident_.load(std::memory_order_relaxed);
  }
  // New work is to be refused, RESOURCE_EXHAUSTED, OVERLOADED.
  bool Shedding() const { return shedding_.load(std::memory_order_relaxed); }

 private:
  void Sample();

  const MemoryGuardOptions options_;
  std::atomic<int64_t> resident_{0};
  std::atomic<bool> shedding_{false};
  int samples_since_trim_ = 0;  // of the thread
  Periodic thread_;             // last
};

}  // namespace txl
