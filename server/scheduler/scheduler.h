#pragma once

// Iteration-level batching: one thread that owns all running turns, slots and
// positions. Each step takes the decoding rows, in turns where they are too
// many, plus some prompt rows; turns join and leave between steps. What to run
// is decided by the pure functions of batch_policy.h and session_slots.h; this
// loop only calls them.
//
// However a turn ends, its session is at a token border: before the first
// generated token as it was, after it with the prompt and every token handed to
// the sink. Steps in flight for it are discarded: they wrote past the committed
// position only. A prompt longer than the ring's spare rows would overwrite
// committed rows, so the state is first saved as an image (the rollback) which
// is dropped at the commit and restored otherwise.
//
// The order of calls:
//
//   Scheduler scheduler(options, runner, &store, &metrics, Clock::Real());
//
//   Turn turn;                        // turn.h
//   turn.lease = *store.Acquire("verona");
//   turn.input = {4, 8, 15};
//   turn.stop.max_tokens = 16;
//   turn.sink = sink;                 // Started, Token, ..., Finished
//   turn.cancel = cancel;
//   absl::Status status = scheduler.Submit(std::move(turn));
//   if (!status.ok()) return status;  // the sink hears nothing
//
//   cancel->Cancel(CancelToken::Why::kCancelled);  // from any thread, at any
//   scheduler.Wake();                              // time; the sink: Failed
//
//   scheduler.StartDrain();           // no new turns
//   scheduler.EndAll();               // after a grace, the running
//   while (!scheduler.Idle()) absl::SleepFor(absl::Milliseconds(10));

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/base/clock.h"
#include "server/engine/step_runner.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/scheduler_options.h"
#include "server/scheduler/scheduler_report.h"
#include "server/scheduler/turn.h"
#include "server/session/session_store.h"

namespace txl {

// Thread-safe except where said.
class Scheduler {
 public:
  // All pointers outlive the scheduler, which takes the store's wake-up for
  // itself. With `start_thread` false nothing runs until RunOnce: for tests.
  Scheduler(SchedulerOptions options, StepRunner* runner, SessionStore* store,
            Metrics* metrics, Clock* clock, bool start_thread = true);
  // Fails what still runs (UNAVAILABLE, DRAINING) and joins the thread.
  ~Scheduler();

  // Queues a turn. On error (RESOURCE_EXHAUSTED QUEUE_FULL + retry, UNAVAILABLE
  // DRAINING, RESOURCE_EXHAUSTED QUOTA of the turn's account, DEADLINE_EXCEEDED
  // DEADLINE_UNREACHABLE, INVALID_ARGUMENT for a turn that turn.h does not
  // allow) the turn's sink is not called and its lease is released.
  absl::Status Submit(Turn turn);

  // Looks at cancel tokens, sinks and the session store soon.
  void Wake();

  // From now on Submit fails with DRAINING. Running and queued turns go on.
  void StartDrain();
  // Ends every running GENERATE at its next token with SERVER_DRAIN. Those
  // without a token yet, and all other turns, end with UNAVAILABLE DRAINING.
  void EndAll();
  // True when nothing is queued or runs.
  bool Idle() const;

  // Calls `take` soon, once, on the scheduler's thread or the destructor's: it
  // must not wait. Not while the device hangs.
  void Report(TakeReport take);

  // Soon the states of these sessions (lease keys) become images, too, where
  // they are in slots and have no turn. Unlike a turn of kSave this takes no
  // lease, so that no client's call is refused for it. Idle() is false until
  // then.
  void SaveStates(absl::Span<const uint64_t> keys);

  // The tenant's prompts leave the prefix cache soon. Those of turns that run
  // now come in at their end.
  void ForgetPrefixes(const std::string& tenant);

  // Age of the last finished step while work waits; zero when nothing waits.
  absl::Duration StallTime() const;

  // One turn of the loop; waits for work at most `wait`. False: nothing to do.
  // REQUIRES: start_thread was false, one thread.
  bool RunOnce(absl::Duration wait);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace txl
