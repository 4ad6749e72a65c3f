#pragma once

// The paper's Table 9 (arXiv:1901.02860) in its own mode: the time per token of
// a model without memory, which recomputes a sliding window of N tokens for
// every next one, and of one that scores in segments with a memory of N.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/status/statusor.h"
#include "server/engine/step_runner.h"
#include "tests/bench/bench_model.h"
#include "tests/bench/machine_peaks.h"

namespace txl {

struct WindowOptions {
  int64_t length = 800;        // N: attention length, window and memory
  int64_t segment_rows = 512;  // most tokens of a step
  double seconds = 10;         // for each of the three measurements, at least
  double tail_share = 0;       // of scored targets
};

// The config of a model with attention length N and an empty start, so that
// what is recomputed from nothing attends to nothing before it.
ModelConfig WithAttentionLength(ModelConfig config, int64_t length);

// One window from nothing in slot 0: `tokens` at positions 0.. in segments, the
// next token sampled from the last one's output.
absl::Status RecomputeWindow(StepRunner* runner, int64_t tokens,
                             int64_t segment_rows);

struct WindowMeasurement {
  int64_t length = 0;
  int64_t windows = 0;                // measured
  double window_seconds = 0;          // of one: the time per token
  double window_flops = 0;            // of one, without its softmax
  int64_t scored_tokens = 0;          // measured
  double score_seconds = 0;           // per token
  double prompt_flop_rate = 0;        // per second: feeding, memory full
  std::optional<double> paper_ratio;  // of Table 9, for its lengths
};

// REQUIRES: one slot, of a model WithAttentionLength.
absl::StatusOr<WindowMeasurement> MeasureWindow(StepRunner* runner,
                                                const ModelConfig& config,
                                                const WindowOptions& options);

nlohmann::ordered_json WindowLine(const WindowMeasurement& measured,
                                  const std::optional<MachinePeaks>& peaks);

}  // namespace txl
