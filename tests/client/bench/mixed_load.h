#pragma once

// A run with every kind of turn, as a test of its results needs it.

#include "client/bench/run/load.h"
#include "tests/client/bench/turns.h"

namespace txl::bench {

// Two seconds of a closed loop: two good turns, one that failed after two
// tokens, one that was refused.
inline LoadResult MixedLoad() {
  constexpr Nanos ms = kNanosPerSecond / 1000;
  LoadResult load;
  load.options.run.requests = 4;
  load.model = "m";
  load.usage = {.cpu_seconds = 0.002,
                .context_switches = 7,
                .threads = 1,
                .connections = 3};
  TurnRecord first = OkTurn(0, 800 * ms);
  first.first_token = 500 * ms;
  first.tokens = 3;
  TurnRecord second = OkTurn(1000 * ms, 800 * ms);
  second.first_token = 1100 * ms;
  second.tokens = 3;
  TurnRecord failed = OkTurn(100 * ms, 700 * ms);
  failed.first_token = 300 * ms;
  failed.tokens = 2;
  failed.outcome = Outcome::kFailed;
  failed.status = "INTERNAL (STEP_FAILED)";
  load.result.turns = {first, failed, Refused(200 * ms), second};
  for (const Nanos at : {500, 600, 800, 300, 800, 1100, 1400, 1800}) {
    load.result.tokens.Add(at * ms, 1);
  }
  for (const Nanos gap : {100, 200, 500, 300, 400}) {
    load.result.gaps.Add(gap * ms);
  }
  load.result.end = 2000 * ms;
  return load;
}

}  // namespace txl::bench
