#pragma once

// The server's counters, read as one consistent snapshot: conservation laws
// (started = finished + active, tokens fed + discarded rows = rows run) hold in
// every snapshot.

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/metrics/distributions.h"
#include "server/metrics/softmax_tail.h"

namespace txl {

// Calls of a method that ended with a status. The name lives for ever: a
// literal.
struct CallKind {
  absl::string_view method;  // "txl.v1.GenerationService/Generate"
  absl::StatusCode code = absl::StatusCode::kOk;
  bool operator<(const CallKind& other) const {
    return std::tie(method, code) < std::tie(other.method, other.code);
  }
};

// What one tenant of the file of --tenants has had, or all others together.
struct TenantCounts {
  std::string tenant;
  int64_t turns_started = 0;
  int64_t turns_active = 0;
  int64_t tokens_prompt = 0;
  int64_t tokens_delivered = 0;
  int64_t refused = 0;  // calls, turns and sessions, by a quota
  // Now, of its sessions, stored ones included. Not for Update: the session
  // store counts them, and they are in no law.
  int64_t sessions = 0;
  int64_t session_bytes = 0;
};

struct Snapshot {
  // Turns, over all kinds. started = sum of finished + active.
  int64_t turns_started = 0;
  int64_t turns_active = 0;
  std::map<std::string, int64_t> turns_finished;  // by status name, "OK", ...
  // Finished turns by status name and reason: a finish reason, the kind of a
  // turn that does not generate, or the API's reason of an error.
  std::map<std::pair<std::string, std::string>, int64_t> turns_ended;

  // Calls of every method, refused ones included.
  std::map<CallKind, int64_t> calls;

  // Queue now.
  int64_t queued_calls = 0;
  int64_t queued_tokens = 0;

  // Steps and rows through the layers.
  // rows_decode + rows_prefill + rows_score + rows_rebuild = rows_run
  // tokens_fed + rows_discarded = rows_run
  int64_t steps = 0;
  int64_t steps_failed = 0;                     // the device reported an error
  absl::Time last_step = absl::InfinitePast();  // when it was collected
  int64_t rows_run = 0;
  int64_t rows_decode = 0;
  int64_t rows_prefill = 0;
  int64_t rows_score = 0;
  int64_t rows_rebuild = 0;
  int64_t tokens_fed = 0;      // rows whose turn kept them
  int64_t rows_discarded = 0;  // rows of cancelled, failed or overlapped work
  int64_t steps_with_decode = 0;  // mean decode rows = rows_decode / this
  int64_t steps_with_prompt_and_decode = 0;

  // Rows of steps that did not fail by whether they computed a cluster: every
  // cluster has the same sum.
  SoftmaxTails softmax_tails;

  // tokens_sampled = tokens_delivered + tokens_discarded
  int64_t tokens_sampled = 0;
  int64_t tokens_delivered = 0;
  int64_t tokens_discarded = 0;
  int64_t tokens_prompt = 0;  // of inputs that their turn has fed whole
  // Tokens that were guessed and fed ahead of their streams; those of them that
  // the stream then sampled (accepted <= guessed); and steps less that it took:
  // of each step the most that one stream had accepted.
  int64_t tokens_guessed = 0;
  int64_t guesses_accepted = 0;
  int64_t steps_saved = 0;
  // Now in the streams, behind the message that gRPC is sending. In no law, and
  // not for Update: see AddStreamTokens.
  int64_t stream_queue_tokens = 0;

  int64_t slots_total = 0;
  int64_t slots_used = 0;
  int64_t sessions_moved_out = 0;  // slot -> image
  int64_t sessions_moved_in = 0;   // image -> slot, begun
  // How moving in, and feeding the tokens of a lost state again, ended. Neither
  // when the turn ended before that was known.
  int64_t image_restores_ok = 0;
  int64_t image_restores_failed = 0;
  int64_t rebuilds_ok = 0;
  int64_t rebuilds_failed = 0;  // the turn did not come to a commit
  int64_t turns_parked = 0;     // now
  // Parked turns that gave their slot up for others, now, and how often that
  // has happened. turns_parked_out <= turns_parked
  int64_t turns_parked_out = 0;
  int64_t parked_moves = 0;
  // Turns that gave their slot up for a more urgent one, or because their
  // tenant had no tokens left.
  int64_t turns_displaced = 0;
  double step_seconds = 0;  // sum over steps

  // Empty without tenants; the first one has all that are not in the file, and
  // the server's own turns. Their sums are the counters of the same name above.
  std::vector<TenantCounts> tenants;

  Distributions distributions;
};

// Thread-safe. Update runs `change` under the lock, so that one event's
// counters move together; it takes no memory itself.
class Metrics {
 public:
  void Update(absl::FunctionRef<void(Snapshot&)> change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Tokens that have come into a stream's queue; negative: that have left one.
  // Takes no lock: gRPC's threads call it for every token, and the scheduler
  // must not wait for one of them.
  void AddStreamTokens(int64_t tokens) {
    stream_queue_tokens_.fetch_add(tokens, std::memory_order_relaxed);
  }
  // Counters for a tenant; their place in Snapshot::tenants.
  int32_t AddTenant(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  Snapshot Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::atomic<int64_t> stream_queue_tokens_{0};
  mutable absl::Mutex mutex_;
  Snapshot values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
