#pragma once

// What every kernel benchmark reports beside its time.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

#include "tests/bench/machine_peaks.h"
#include "tests/bench/step_costs.h"

namespace txl {

// What a benchmark of streamed numbers goes through in turn: more than the
// caches of one socket.
inline constexpr int64_t kStreamedBytes = int64_t{512} << 20;

// For RunCounted; `rate`: iterations per second.
void SetCounters(benchmark::State& state, const PhaseCost& work,
                 const MachinePeaks& peaks, double rate);

// Runs the loop of `state` and sets the counters GB/s and GFLOP/s of `work` an
// iteration, and their shares of the peaks. The larger share says what the
// kernel is bound by.
template <typename Iteration>
void RunCounted(benchmark::State& state, const PhaseCost& work,
                const MachinePeaks& peaks, const Iteration& iteration) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (auto _ : state) iteration();
  const double seconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  SetCounters(state, work, peaks,
              static_cast<double>(state.iterations()) / seconds);
}

// The peaks as lines of the report's context.
void AddPeaksToContext(const MachinePeaks& peaks);

}  // namespace txl
