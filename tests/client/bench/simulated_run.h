#pragma once

// Runs of the load test against a SimulatedTarget.

#include "client/bench/result/report.h"
#include "tests/client/bench/simulated_target.h"

namespace txl::bench {

constexpr Nanos kMs = kNanosPerSecond / 1000;

// An open loop with evenly spaced arrivals, one token a turn.
RunOptions ConstantRate(double rate, double seconds);

struct SimulatedResult {
  DriverResult result;
  std::vector<v1::GenerateRequest> requests;
  int64_t most_running = 0;
  int64_t sessions_made = 0;
  int64_t sessions_left = 0;
};

// With one driver, to its end.
SimulatedResult Simulate(const RunOptions& options,
                         const SimulatedServer& server);
Report SimulatedReport(const RunOptions& options, const SimulatedServer& server,
                       const Limits& limits = {});

}  // namespace txl::bench
