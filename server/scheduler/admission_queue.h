#pragma once

// Turns that wait for a slot: bounded by calls and by prompt tokens. Tenants
// take turns by weight (FairOrder); the turns of one stand in order of when
// they are due, which for turns of one priority is the order of arrival. It
// also keeps the turn counters of the queue, so that a snapshot never sees a
// turn twice or not at all.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/step_ledger.h"
#include "server/scheduler/turn.h"

namespace txl {

// Which of several flows is served next, so that each gets service by its
// weight: start-time fair queueing (Goyal, Vin, Cheng 1997). A flow's start is
// the service that it has had, by weight; who has the least goes first. A flow
// that wanted nothing for a while begins where the others are: it gets no
// credit for it.
//
// If costs are at most C, the services of flows f and g that stand in line
// throughout differ by
//   |got_f / weight_f - got_g / weight_g| <= C / weight_f + C / weight_g
// and no flow starves: a flow that waits begins at most C / weight_f behind the
// one that is served, so that each of n others gets C weight_g / weight_f + C
// before it at most, in all
//   C (sum of weights / weight_f + n)

// Not thread-safe. A call costs O(log flows).
class FairOrder {
 public:
  // By start, then by name.
  using Line = std::set<std::pair<double, std::string>>;

  // The flow wants service, and stands in line until Leave. One in line only
  // takes its new weight, > 0.
  void Join(const std::string& flow, double weight);
  void Leave(const std::string& flow);
  // Empties the line and forgets all flows.
  void Clear();

  // The flows in line, the next one first.
  const Line& line() const { return line_; }

  // The flow, in line or not, got service of this cost, >= 0; or gives back
  // what it got and did not use, and comes sooner by that.
  void Charge(const std::string& flow, double cost);
  void Refund(const std::string& flow, double cost);

  // Flows that are remembered: those in line, and those that had more than the
  // others when they left.
  size_t size() const { return flows_.size(); }

 private:
  struct Flow {
    double weight = 1;
    double start = 0;
    bool in_line = false;
  };

  // Moves the flow to another start.
  void Restart(const std::string& name, Flow& flow, double start);
  // Forgets flows out of line that would begin where the others are.
  void ForgetPast();

  std::map<std::string, Flow> flows_;
  Line line_;
  Line gone_;                // the flows out of line
  double virtual_time_ = 0;  // the start of what was served last
};

struct AdmissionQueueOptions {
  int32_t max_calls = 0;
  // Prompts that wait have at most so many tokens; one that waits alone may
  // have more, because it would be refused for ever.
  int64_t max_tokens = 0;
  absl::Duration retry_after;   // RetryInfo of QUEUE_FULL
  absl::Duration priority_age;  // SchedulerOptions
};

struct QueuedTurn {
  Turn turn;
  absl::Duration submitted;  // Clock::Monotonic
};

// When a turn that began to wait at `since` is due: the sooner, the more
// urgent. A turn is behind later ones of higher priority, but behind none that
// came more than `age` for each step of priority after it.
inline absl::Duration DueOf(int32_t priority, absl::Duration since,
                            absl::Duration age) {
  return since - priority * age;
}

// Thread-safe. Predicates run under the queue's lock: they must not call back.
class AdmissionQueue {
 public:
  AdmissionQueue(AdmissionQueueOptions options, Metrics* metrics);

  // Counts the turn as started. Where the queue is full, a tenant that has
  // fewer calls in it for its weight than another one pushes that one's last
  // turn out. Errors: QUEUE_FULL + retry, DEADLINE_UNREACHABLE where turns of
  // its tenant wait before it that take until after its deadline
  // (step_ledger.h), DRAINING after Close; `turn` is then left as it was.
  absl::Status Push(Turn& turn, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes and returns the first turn for which `wanted` is true. Its time in
  // the queue ends `now`.
  std::optional<QueuedTurn> TakeFirst(
      absl::Duration now, absl::FunctionRef<bool(const QueuedTurn&)> wanted)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A turn that was pushed out, and still is to be told so.
  std::optional<QueuedTurn> TakePushedOut(absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A turn that was taken gets a slot: others of its tenant come later by that.
  // Where it ends before it has used what it might have, they come sooner.
  void Charge(const Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  void Refund(const Turn& turn, int64_t tokens) ABSL_LOCKS_EXCLUDED(mutex_);
  // A step with so many tokens ended.
  void NoteStep(int64_t tokens, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  bool empty() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The earliest deadline of a waiting turn; infinite when there is none.
  absl::Duration EarliestDeadline() const ABSL_LOCKS_EXCLUDED(mutex_);
  // When the oldest waiting turn came; infinite when there is none.
  absl::Duration OldestSubmitted() const ABSL_LOCKS_EXCLUDED(mutex_);
  // When the first tenant may go on that has no tokens left and turns that
  // wait; infinite when there is none.
  absl::Duration EarliestRefill(absl::Duration now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Looks at every waiting turn.
  void ForEach(absl::FunctionRef<void(const QueuedTurn&)> look) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on Push fails with DRAINING, but for turns that only save a state.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // By when they are due, then by arrival.
  using Waiting = std::map<std::pair<absl::Duration, uint64_t>, QueuedTurn>;
  struct Tenant {
    double weight = 1;
    Waiting waiting;  // never empty

    double load() const { return static_cast<double>(waiting.size()) / weight; }
  };
  using Tenants = std::map<std::string, Tenant>;

  // Whether a turn that would wait behind those of `waiting` that are due by
  // `due` would begin too late.
  bool TooLate(const Turn& turn, const Waiting& waiting, absl::Duration due,
               absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Fits(int64_t tokens) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The last turn of the tenant with most calls for its weight; false: a tenant
  // with `load` after the call has no fewer.
  bool PushOut(double load) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  QueuedTurn Take(Tenants::iterator tenant, Waiting::iterator turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The counters of a turn that leaves.
  void Leave(const QueuedTurn& taken, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AdmissionQueueOptions options_;
  Metrics* const metrics_;
  mutable absl::Mutex mutex_;
  Tenants tenants_ ABSL_GUARDED_BY(mutex_);
  FairOrder order_ ABSL_GUARDED_BY(mutex_);  // of the tenants that wait
  std::set<std::pair<double, std::string>> loads_ ABSL_GUARDED_BY(mutex_);
  ServiceRate rate_ ABSL_GUARDED_BY(mutex_);
  std::vector<QueuedTurn> pushed_out_ ABSL_GUARDED_BY(mutex_);
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration latest_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace txl
