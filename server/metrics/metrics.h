#pragma once

// The server's counters, read as one consistent snapshot: conservation laws
// (started = finished + active, tokens fed + discarded rows = rows run) hold in
// every snapshot.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace txl {

struct Snapshot {
  // Turns, over all kinds. started = sum of finished + active.
  int64_t turns_started = 0;
  int64_t turns_active = 0;
  std::map<std::string, int64_t> turns_finished;  // by status name, "OK", ...

  // Queue now.
  int64_t queued_calls = 0;
  int64_t queued_tokens = 0;

  // Steps and rows through the layers.
  // rows_decode + rows_prefill + rows_score + rows_rebuild = rows_run
  // tokens_fed + rows_discarded = rows_run
  int64_t steps = 0;
  int64_t rows_run = 0;
  int64_t rows_decode = 0;
  int64_t rows_prefill = 0;
  int64_t rows_score = 0;
  int64_t rows_rebuild = 0;
  int64_t tokens_fed = 0;      // rows whose turn kept them
  int64_t rows_discarded = 0;  // rows of cancelled, failed or overlapped work
  int64_t steps_with_decode = 0;  // mean decode rows = rows_decode / this
  int64_t steps_with_prompt_and_decode = 0;

  // tokens_sampled = tokens_delivered + tokens_discarded
  int64_t tokens_sampled = 0;
  int64_t tokens_delivered = 0;
  int64_t tokens_discarded = 0;

  int64_t slots_total = 0;
  int64_t slots_used = 0;
  int64_t sessions_moved_out = 0;  // slot -> image
  int64_t sessions_moved_in = 0;   // image -> slot
  int64_t turns_parked = 0;        // now
  double step_seconds = 0;         // sum over steps
};

// Thread-safe. Update runs `change` under the lock, so that one event's
// counters move together.
class Metrics {
 public:
  void Update(const std::function<void(Snapshot&)>& change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Snapshot Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  Snapshot values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
