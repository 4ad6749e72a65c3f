#pragma once

// The loop of scheduler.h: Admit, Plan, Submit, Collect, Emit, Retire. All
// state of running turns is here and belongs to one thread. Its methods are in
// scheduler_loop.cc (what may have changed, the rows of a step, the report),
// scheduler_admission.cc (from the queue to a slot; prompts whose beginning is
// there already; which tenant waits for which), scheduler_readers.cc (turns
// that stand still; tokens that are guessed ahead) and scheduler_results.cc
// (from the device to the sinks).

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/base/clock.h"
#include "server/engine/step_runner.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/admission_queue.h"
#include "server/scheduler/batch_policy.h"
#include "server/scheduler/guesser.h"
#include "server/scheduler/resting_turns.h"
#include "server/scheduler/scheduler_options.h"
#include "server/scheduler/scheduler_report.h"
#include "server/scheduler/sequence.h"
#include "server/scheduler/session_slots.h"
#include "server/scheduler/step_ledger.h"
#include "server/scheduler/turn_prefixes.h"
#include "server/session/session_store.h"

namespace txl {

// How long work has waited for the device: the measure of a hung step.
// Thread-safe. Times are Clock::Monotonic.
class Heartbeat {
 public:
  // Work came in: the loop should move from now on.
  void Start(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!since_.has_value()) since_ = now;
  }
  // A step ended.
  void Beat(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    since_ = now;
  }
  // Nothing to do: no work, or only work that waits for its clients.
  void Rest() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    since_.reset();
  }
  absl::Duration Age(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return since_.has_value() ? now - *since_ : absl::ZeroDuration();
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<absl::Duration> since_ ABSL_GUARDED_BY(mutex_);
};

// What the loop shares with other threads; each is thread-safe.
struct SchedulerShared {
  SchedulerShared(AdmissionQueueOptions options, Metrics* metrics)
      : queue(options, metrics) {}
  AdmissionQueue queue;
  Heartbeat heartbeat;
  Inbox<TakeReport> reports;
  Inbox<std::string> forgotten_tenants;  // Scheduler::ForgetPrefixes
  std::atomic<bool> end_all{false};
  Inbox<uint64_t> due_states;  // Scheduler::SaveStates
  // Accepted and not ended: turns, and states to be saved.
  std::atomic<int64_t> live_turns{0};
};

struct SchedulerParts {
  StepRunner* runner = nullptr;
  SessionStore* store = nullptr;
  Metrics* metrics = nullptr;
  Clock* clock = nullptr;
};

class SchedulerLoop {
 public:
  SchedulerLoop(const SchedulerOptions& options, const SchedulerParts& parts,
                SchedulerShared* shared);

  // One turn: looks at everything that may have changed, submits a step where
  // there is one to run, and collects the oldest one when no more may be in
  // flight or there was none to submit. False: there was nothing to do.
  bool Iterate();
  // Time until something happens by itself (a deadline, a slow reader's limit,
  // the next look for sessions whose time-to-live has passed).
  absl::Duration NextLimit() const;
  // Ends every turn with `status` and collects what is in flight.
  void EndWith(const absl::Status& status);
  // Answers all requests for a report.
  void AnswerReports();

 private:
  // A turn that has left the queue. Ids grow: the map's order is that of
  // admission.
  struct Running {
    Sequence sequence;
    TurnSlot slot;
    TurnRest rest = {};
    TurnPrefix prefix = {};
  };
  using RunningMap = std::map<uint64_t, Running>;
  // A turn whose slot is claimed and not ready: no step waits for it.
  struct Entering {
    std::optional<QueuedTurn> queued;  // it has left the queue
    uint64_t returning = 0;            // else the running one that comes back
    TurnSlot slot;
  };
  struct InFlight {
    StepId step = 0;
    StepShape shape;
    std::vector<uint64_t> owners;  // of each row
    std::vector<RowKind> kinds;
    // The account of each row, null or missing at the end where it has none.
    std::vector<TenantAccount*> accounts;
  };
  // What tenants may still sample in a step that is planned at `now`.
  struct Allowance {
    absl::Duration now;
    std::map<TenantAccount*, int64_t> left;

    // A turn that may sample in it, or one whose tenant has no tokens left.
    bool Grant(Running& running);
  };
  // A turn that gets no slot.
  struct Wanting {
    std::string tenant;
    int32_t priority = 0;
    absl::Duration due;
  };

  SchedulerReport Report() const;
  static TurnReport ReportOf(const Running& running, absl::Duration now);

  // Ends turns that are no longer wanted or may not go on.
  void Poll();
  // How a turn that waits in the queue ends.
  std::optional<absl::Status> EndOfQueued(const QueuedTurn& queued,
                                          absl::Duration now) const;
  void PollRunning(absl::Duration now);
  // Whether the turn stands still.
  void LookAt(RunningMap::iterator it, absl::Duration now);

  // Turns enter slots, the one that has waited longest first, be it for the
  // first time or after giving its slot up.
  void Admit();
  // One turn; false when no other can. `blocked`: the first one that gets no
  // slot now, behind which only those pass that need no new one.
  bool AdmitNext(std::optional<Wanting>& blocked);
  bool NeedsSlot(const Turn& turn) const;
  SlotChoice Choose(const SessionLease& lease) const;
  // `choice`, after a parked turn has given its slot up where that is it.
  SlotChoice AfterYield(SlotChoice choice, const SessionLease& lease);
  void Start(QueuedTurn queued, const SlotChoice& choice);
  void Go(Entering entering);
  void Enter(Entering entering);
  void Run(QueuedTurn queued, TurnSlot slot);
  // The turn that stands still longest gives its slot up. REQUIRES: there is
  // one.
  void Yield();
  void Return(RunningMap::iterator it, SlotChoice choice);
  void ComeBack(RunningMap::iterator it, TurnSlot slot);
  // The turn does not enter its slot; Refuse or Fail ends it.
  void TurnAway(std::list<Entering>::iterator it);
  // Nothing else is to be done: waits until the first turn can enter.
  void WaitToEnter();
  void Refuse(QueuedTurn queued, const absl::Status& status);

  // The turn begins with what the prefix cache has, or waits for an older turn
  // that feeds the same prompt now.
  void BeginOrWait(RunningMap::iterator it);
  // Turns that waited begin, where their leader has fed what they share, or
  // stands still.
  void ServeWaiting();
  void ServeWaiting(RunningMap::iterator it);

  // Asks the running turn of the same tenant that is due last, after the
  // wanting one and with a lower priority, to give its slot up: it gets no more
  // rows, and may yield once nothing of it is in flight.
  void AskForSlot(const std::optional<Wanting>& wanting);
  // Nothing, or when the turn's tenant may sample again.
  static std::optional<absl::Duration> PausedUntil(const Turn& turn,
                                                   absl::Duration now);

  // Turns that may have rows in the next step.
  std::vector<RunningMap::iterator> PlannableTurns();
  // Fills `plan` with the rows of the next step, if any, and says whose they
  // are.
  InFlight PlanStep(StepPlan& plan);
  bool MayPlan(const Running& running) const;
  // Rows of each turn: between tenants by weight, if there are several.
  std::vector<int64_t> Divide(const std::vector<RunningMap::iterator>& turns,
                              absl::Span<const BatchCandidate> candidates,
                              const BatchLimits& limits);
  void TakeTokensOut(absl::Span<const StepRow> rows, TenantAccount* account);
  // `count` rows of a turn: of what its state still needs, then its own.
  void PlanRows(Running& running, int64_t count, std::vector<StepRow>& rows);
  // The guesses that stand behind each turn's own row in that step, if any, at
  // most `room` together; they are guesses_'.
  std::vector<absl::Span<const int32_t>> ChooseGuesses(
      const std::vector<RunningMap::iterator>& turns,
      absl::Span<const int64_t> rows,
      absl::Span<const BatchCandidate> candidates, int64_t room);
  // Most guesses of one stream, `room` at most; nothing: it may have none.
  std::optional<int64_t> MostGuessesOf(const Running& running, int64_t room);
  // A kAlternatives turn takes free slots as lanes while no turn waits for one,
  // and gives back those that it has no use for.
  void ShareOut(Running& running);
  void Submit(StepPlan plan, InFlight record);

  void Collect();
  void Emit(uint64_t id, RowKind kind, TenantAccount* account,
            RowResult result);
  // The state came in with the turn: false when it did not.
  bool CheckImport(RunningMap::iterator it);
  void EmitToken(RunningMap::iterator it, RowResult result);
  void FinishInput(RunningMap::iterator it);

  void Finish(RunningMap::iterator it, FinishReason reason);
  void Fail(RunningMap::iterator it, const absl::Status& status);
  // `finished`: null for a turn that broke off.
  void Retire(RunningMap::iterator it, const std::string& outcome,
              const TurnFinished* finished);
  // How feeding the tokens of a lost state again ended.
  void BookRebuild(const Running& running);
  // The turn's last counters.
  void BookFailure(TurnEnd end, const absl::Status& status);

  const SchedulerOptions options_;
  StepRunner* const runner_;
  SessionStore* const store_;
  Metrics* const metrics_;
  Clock* const clock_;
  SchedulerShared* const shared_;
  StepLedger ledger_;
  SessionSlots slots_;
  RestingTurns resting_;

  std::list<Entering> entering_;  // in the order in which they were let in
  RunningMap running_;
  TenantRows stream_rows_{DivideRows};
  TenantRows prompt_rows_{PassRows};
  std::deque<InFlight> in_flight_;
  uint64_t next_id_ = 0;
  uint64_t steps_planned_ = 0;
  bool stepping_ = false;  // the last iteration had a step in flight
  StreamGuesses guesses_;
  TurnPrefixes prefixes_;
  int64_t waiting_ = 0;  // running turns that wait for a leader
  absl::Duration next_expiry_ = -absl::InfiniteDuration();
};

}  // namespace txl
