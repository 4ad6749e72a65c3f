#pragma once

// What a run is.

#include <cstdint>
#include <string>

#include "client/bench/plan/arrivals.h"
#include "client/bench/plan/workload.h"

namespace txl::bench {

enum class Mode {
  // `streams` streams; each starts its next turn when its last one ended, so
  // latency is not a function of an offered load.
  kClosed,
  // Turns start as the schedule says, whatever became of earlier ones.
  kOpen,
};

// "closed loop", "open loop".
inline const char* ModeName(Mode mode) {
  return mode == Mode::kClosed ? "closed loop" : "open loop";
}

struct RunOptions {
  Mode mode = Mode::kClosed;
  int32_t streams = 8;  // of a closed loop; they start over its ramp
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  RateProfile rate;  // of an open loop; `ramp_seconds` also of a closed one
  Workload workload;

  // Conversations start for that long, and so many in all; 0: no such limit.
  // Both 0: 10 seconds.
  double seconds = 0;
  int64_t requests = 0;
  // Turns that are due before are run but not counted.
  double warmup_seconds = 0;
  // After `seconds` running turns get so long, then they are cancelled and
  // count as incomplete.
  double drain_seconds = 60;
  // An open loop does not send turns that are due while so many run.
  int64_t max_running = 10'000;
  double slow_read_seconds = 0.1;  // a slow reader waits so long at each event
};

}  // namespace txl::bench
