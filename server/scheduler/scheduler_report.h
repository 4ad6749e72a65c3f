#pragma once

// What the scheduler does at one moment, for a report of a bug: no ids of
// tokens, no texts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/turn.h"
#include "server/session/session_name.h"

namespace txl {

struct TurnReport {
  // "queued", "entering" a slot, "prompting", "decoding" or "collecting"
  // (SequencePhase).
  const char* state = "";
  TurnKind kind = TurnKind::kGenerate;
  uint64_t key = 0;    // of its session, as SessionLease::key
  SessionName name;    // of its session; empty: temporary
  std::string tenant;  // of its account; empty: it has none
  int32_t priority = 0;
  absl::Duration age;  // since it was submitted
  int64_t tokens_in = 0;
  // Set for running turns; `slot` is also set for entering ones.
  int64_t unsent = 0;     // events that its reader has not taken
  int32_t slot = -1;      // -1: none
  int64_t rows_left = 0;  // to be planned; not those that derive
  int64_t tokens_in_flight = 0;
  int64_t generated = 0;
  bool parked = false;  // its reader lags
  bool paused = false;  // its tenant has no tokens left
  bool away = false;    // it gave its slot up, for any reason
};

struct SlotReport {
  int32_t slot = -1;
  uint64_t key = 0;  // of the session there
  int64_t rows = 0;  // as of its last turn's end
  bool running = false;
  bool leaving = false;
  bool image_current = false;
  absl::Duration idle;  // since its last turn; of a running one no meaning
};

struct SchedulerReport {
  int64_t steps_planned = 0;
  int64_t steps_in_flight = 0;
  // At most as many as were asked for, and how many there are.
  std::vector<TurnReport> turns;
  int64_t all_turns = 0;
  std::vector<SlotReport> slots;  // those that have a session
  int64_t slots_total = 0;
  int64_t slots_used = 0;
};

using TakeReport = std::function<void(SchedulerReport)>;

// What other threads want of the loop, until it comes to it. Thread-safe.
template <typename Request>
class Inbox {
 public:
  void Add(Request take) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(std::move(take));
  }
  std::vector<Request> TakeAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<Request> waiting_ ABSL_GUARDED_BY(mutex_);
};

// Entries of each list in a report.
inline constexpr size_t kMostReported = 1000;

}  // namespace txl
