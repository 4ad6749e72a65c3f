#pragma once

// The loop of one thread: starts what is due, takes what comes, writes down
// what became of it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "client/bench/measure/histogram.h"
#include "client/bench/measure/turn_record.h"
#include "client/bench/run/run_options.h"
#include "client/bench/run/stream_check.h"
#include "client/bench/run/target.h"

namespace txl::bench {

// Counters of a run as it goes, for a display; written by drivers, read by
// anybody.
struct Progress {
  std::atomic<int64_t> sent{0};
  std::atomic<int64_t> ended{0};   // however
  std::atomic<int64_t> failed{0};  // rejected, failed or not sent
  std::atomic<int64_t> tokens{0};
};

// What the drivers of a run share.
struct SharedRun {
  const RunOptions& options;
  int64_t vocabulary = 0;
  std::string session_prefix;          // of the sessions that a run makes
  Nanos start = 0;                     // on the target's clock
  std::atomic<int64_t> next{0};        // conversation of a closed loop
  std::atomic<bool> cancelled{false};  // ends the run
  Progress progress = {};
};

// What one driver saw; those of a run are merged.
struct DriverResult {
  std::vector<TurnRecord> turns;  // in the order of their ends
  // Between tokens of measured ordinary turns; k tokens in one message count k
  // times gap/k.
  Histogram gaps;
  Timeline tokens;           // of all turns
  Nanos end = 0;             // when nothing was left to do, since the start
  bool interrupted = false;  // it was ended from outside
};

// Driver `index` of `count`: it has every count-th stream or arrival.
class Driver {
 public:
  Driver(SharedRun* shared, Target* target, int32_t index, int32_t count);
  // Drives the run to its end.
  DriverResult Run();

 private:
  enum class Phase { kFree, kCreating, kRunning, kThinking, kDeleting };
  // A conversation and its current call; its place is the call's number.
  struct Slot {
    Phase phase = Phase::kFree;
    int64_t turns = 1;
    bool streams_next = false;  // its stream goes on when it is over
    bool cancel_sent = false;
    std::string session_id;  // empty: none
    TurnPlan plan;
    StreamCheck check;
    TurnRecord record;  // of the current turn
  };
  enum class Due { kArrival, kConversation, kTurn, kRead };
  struct Timer {
    Nanos at;
    int64_t order;  // of those at the same time
    Due due;
    int32_t slot;
    bool operator>(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  Nanos Now() { return target_->Now() - shared_->start; }
  void Schedule(Nanos at, Due due, int32_t slot = 0);
  void ScheduleArrival();
  void FireDue();
  void Fire(const Timer& timer);
  bool MayStart(Nanos now) const;
  bool Over(Nanos now);
  Nanos NextStop() const;

  void StartConversation(Nanos scheduled, int64_t conversation);
  void NextOfStream(Nanos scheduled);
  void StartTurn(int32_t slot);
  void Handle(const Event& event);
  void HandleResponse(int32_t slot, const v1::GenerateResponse& response);
  void CountTokens(Slot& slot, int64_t tokens, Nanos now);
  void EndTurn(int32_t slot, absl::Status status);
  void EndConversation(int32_t slot, const absl::Status& status);
  void CancelAll();
  int32_t TakeSlot();
  void FreeSlot(int32_t slot);

  SharedRun* const shared_;
  const RunOptions& options_;
  Target* const target_;
  const int32_t index_;
  const int32_t count_;
  Arrivals arrivals_;
  int64_t arrival_ = -1;  // the next one's number
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  int64_t order_ = 0;
  std::vector<Slot> slots_;
  std::vector<int32_t> free_;
  int64_t used_ = 0;  // slots
  Nanos stop_starting_;
  Nanos cancel_at_;
  bool ending_ = false;  // everything was cancelled
  DriverResult result_;
};

}  // namespace txl::bench
