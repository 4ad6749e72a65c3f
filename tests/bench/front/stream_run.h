#pragma once

// The scheduler on a StepRunner with streams that take every token at once: no
// gRPC, no model of its own.

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/text/vocabulary.h"
#include "server/engine/step_runner.h"

namespace txl {

struct StreamLoad {
  int32_t sessions = 32;                   // >= 1, at most the runner's slots
  int64_t steps = 1000;                    // measured; 1..1e9
  const Vocabulary* vocabulary = nullptr;  // of the texts; null: none
  double temperature = 1;
  // Each session begins with so many random ids below `prompt_ids`.
  int64_t prompt_tokens = 1;
  int64_t prompt_ids = 1;
  int32_t prompt_rows_per_step = 128;
  // After the measured steps one more session (one more slot) is fed so many
  // tokens while the streams go on; 0: none.
  int64_t beside_tokens = 0;
};

struct StreamTimes {
  // Of the measured steps, which begin when every session has generated.
  int64_t tokens = 0;
  absl::Duration time;
  double processor_seconds = 0;  // user and system, of this process
  // Between tokens of the first stream: in the measured steps, and while the
  // prompt beside them was fed.
  std::vector<double> step_seconds;
  std::vector<double> beside_seconds;
};

// One GENERATE turn of each session, all from the start to the end of the
// measurement, on a thread of the scheduler, which calls `at_border` before the
// first measured step and after the last one. Afterwards nothing is in flight.
// The status of a turn that ends before.
absl::StatusOr<StreamTimes> RunStreams(const StreamLoad& load,
                                       StepRunner* runner,
                                       std::function<void()> at_border);

}  // namespace txl
