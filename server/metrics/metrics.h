#pragma once

// The server's counters, read as one consistent snapshot: conservation laws
// (started = finished + active, tokens fed + discarded rows = rows run) hold in
// every snapshot.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace txl {

// Counts of observed values by upper bounds that are fixed from the start.
// Observing takes no memory.

// Not thread-safe; copies are independent.
class Histogram {
 public:
  static constexpr size_t kMaxBounds = 24;

  // `bounds` ascend, are at most kMaxBounds and outlive every copy. Values over
  // the last one are counted too.
  explicit Histogram(absl::Span<const double> bounds) : bounds_(bounds) {}

  void Observe(double value);

  absl::Span<const double> bounds() const { return bounds_; }
  // Values that were at most bounds()[i].
  int64_t AtMost(size_t i) const;
  int64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  absl::Span<const double> bounds_;
  std::array<int64_t, kMaxBounds + 1> counts_{};  // of each bound alone; rest
  int64_t count_ = 0;
  double sum_ = 0;
};

// Every histogram of the server, with its bounds. Seconds are differences of
// Clock::Monotonic. Bounds of requests and tokens are those of OpenTelemetry's
// conventions for generative models, with finer ones in front because a step
// may take less than 10 ms, and 0.2 s and 2 s for the first token, where
// objectives usually stand.

inline constexpr std::array kFirstTokenBounds = {
    .0005, .001, .002, .003, .005, .0075, .01, .02, .04, .06, .08,
    .1,    .2,   .25,  .5,   .75,  1.,    2.,  2.5, 5.,  7.5, 10.};
inline constexpr std::array kTokenBounds = {
    .0005, .001, .002, .003, .005, .0075, .01, .025, .05, .075,
    .1,    .15,  .2,   .3,   .4,   .5,    .75, 1.,   2.5};
inline constexpr std::array kRequestBounds = {
    .0005, .001, .002, .003, .005, .0075, .01,   .02,   .04,   .08,
    .16,   .32,  .64,  1.28, 2.56, 5.12,  10.24, 20.48, 40.96, 81.92};
// A small model's step takes less than half a millisecond.
inline constexpr std::array kStepBounds = {
    .0001, .00025, .0005, .001, .002, .003, .005, .0075, .01, .025, .05,
    .075,  .1,     .15,   .2,   .3,   .4,   .5,   .75,   1.,  2.5};
inline constexpr std::array kIdleBounds = {
    .1, 1., 5., 15., 60., 300., 900., 3600., 14400., 86400., 604800.};
// A disk syncs within a tenth of a millisecond (its own memory) to seconds (a
// busy one).
inline constexpr std::array kCommitBounds = {
    .0001, .00025, .0005, .001, .0025, .005, .01, .025,
    .05,   .1,     .25,   .5,   1.,    2.5,  5.,  10.};
// Numbers of tokens, rows and turns.
inline constexpr std::array kSizeBounds = {
    1.,   2.,    4.,    8.,    16.,   32.,    64.,    128.,  256.,
    512., 1024., 2048., 4096., 8192., 16384., 32768., 65536.};

// What stood in a step.
enum class StepKind {
  kDecode,  // running streams only
  kPrompt,  // prompts, input to score or restored states only
  kMixed,   // both
};
inline constexpr int kStepKinds = 3;

struct Distributions {
  // Turns. Queue: those that have left it, to run or because they ended.
  // Request: all that have ended, from submission on.
  Histogram queue_seconds{kRequestBounds};
  Histogram request_seconds{kRequestBounds};
  Histogram prompt_tokens{kSizeBounds};     // of turns that have ended
  Histogram generated_tokens{kSizeBounds};  // of GENERATE turns that have ended
  Histogram cancel_to_release_seconds{kFirstTokenBounds};

  // Tokens handed to streams: each is in one of the first two.
  Histogram first_token_seconds{kFirstTokenBounds};  // since submission
  Histogram inter_token_seconds{kTokenBounds};
  // Mean over a GENERATE turn of two tokens or more.
  Histogram time_per_output_token_seconds{kTokenBounds};
  Histogram stall_seconds{kRequestBounds};  // a stream was parked

  // Steps; the time is the device's and only of those that did not fail.
  std::array<Histogram, kStepKinds> step_seconds = {
      Histogram(kStepBounds), Histogram(kStepBounds), Histogram(kStepBounds)};
  Histogram step_batch_size{kSizeBounds};  // turns
  Histogram step_tokens{kSizeBounds};      // rows through the layers

  // Sessions.
  Histogram restore_seconds{kRequestBounds};         // image -> slot
  Histogram idle_before_evict_seconds{kIdleBounds};  // slot -> image
};

// What became of the clusters of an adaptive softmax (arXiv:1609.04309), of
// which a step evaluates only those that a result can depend on
// (model/sampling/distribution.h).

// One cluster. computed + skipped = distributions that were wanted of it.
struct SoftmaxTail {
  int64_t computed = 0;  // the cluster's words were evaluated
  int64_t skipped = 0;   // no result needed them
};

// One per cluster, in the order of the vocabulary; none: a plain softmax, or
// no step yet. Models have about three, and a step must not allocate memory.
using SoftmaxTails = absl::InlinedVector<SoftmaxTail, 4>;

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
  // Turns that were looked up in the prefix cache, those that found something,
  // and the prompt tokens that they found. prefix_hits <= prefix_lookups
  int64_t prefix_lookups = 0;
  int64_t prefix_hits = 0;
  int64_t tokens_cached = 0;
  // State images in the prefix cache and their host bytes, now; and how many
  // were given up for others.
  int64_t prefix_images = 0;
  int64_t prefix_bytes = 0;
  int64_t prefix_evictions = 0;
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
