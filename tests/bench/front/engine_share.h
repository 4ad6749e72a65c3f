#pragma once

// The scheduler's streams beside the engine alone, on the same runner.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/step_runner.h"
#include "tests/bench/front/stream_run.h"
#include "tests/bench/session_driver.h"

namespace txl {

struct EngineShare {
  StreamTimes streams;
  StepTimes before, after;  // of the engine alone
};

// Steps of `load` with nobody but a SessionDriver, then streams, then the
// driver again. REQUIRES: load.sessions slots, one more for a prompt beside.
absl::StatusOr<EngineShare> MeasureEngineShare(const StreamLoad& load,
                                               const DriverOptions& driving,
                                               StepRunner* runner);

// Tokens per second of both, the former as a share of the latter (the mean of
// before and after, without their first steps, when nothing was in flight);
// step times; those while a prompt was fed.
nlohmann::ordered_json EngineShareLine(const StreamLoad& load,
                                       const EngineShare& share);

}  // namespace txl
