#pragma once

// Sheds new work while the process holds nearly all the memory that it may:
// the last guard, for what no budget counts.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/task_thread.h"

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

// The one budget for memory, divided once at start: plain data that the
// composition root computes and GetServerStatus and the metrics show.

// Bytes of host memory, each >= 0. The parts' sum is `limit`.
struct MemoryDivision {
  int64_t limit = 0;     // what the process may take: --memory-limit or found
  int64_t weights = 0;   // the model, as it is kept for steps
  int64_t slots = 0;     // segment memory of sessions that have a slot
  int64_t images = 0;    // state images of those that have none
  int64_t prefixes = 0;  // of beginnings of prompts, kept for later prompts
  int64_t ids = 0;       // session records and their token ids
  int64_t records = 0;   // answers of turns with a request_id
  int64_t requests = 0;  // messages half received, calls in flight
  int64_t streams = 0;   // answers being written
  int64_t reserve = 0;  // libraries, stacks, a step's tensors, the heap's waste
};

// What is there and what is asked for. Bytes; 0 in a wish: by division, except
// where absence says so.
struct MemoryWishes {
  int64_t limit = 0;    // > 0
  int64_t weights = 0;  // of the host; 0: they are on a device
  int64_t step = 0;     // tensors of a step
  // Host memory of a slot; 0: slots are on a device.
  int64_t bytes_per_slot = 0;
  int64_t most_slots = 1;      // more are of no use, unless `slots` says so
  int64_t message_bytes = 0;   // the largest request
  int64_t slots = 0;           // --slots, not bytes
  int64_t slot_memory = 0;     // --slot-memory, where --slots says nothing
  int64_t session_memory = 0;  // --session-memory
  int64_t replay_memory = 0;   // --replay-memory
  // --prefix-cache; absent: by division, 0: none.
  std::optional<int64_t> prefix_cache;
};

// Weights, the reserve and wishes are taken off the limit; the rest goes to the
// other parts in fixed shares, slots above `most_slots` to images.
// Errors, ResourceExhausted: the limit does not hold what the program needs at
// least, or a wish is above what is left; they name the flag, the bytes that it
// asks for and those that are left.
absl::StatusOr<MemoryDivision> DivideMemory(const MemoryWishes& wishes);

}  // namespace txl
