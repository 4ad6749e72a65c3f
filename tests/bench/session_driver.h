#pragma once

// Sessions of a StepRunner as benchmarks need them: memories full of real rows
// from the first measured step on, then token after token or segment after
// segment.

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/step_runner.h"

namespace txl {

struct DriverOptions {
  int32_t sessions = 1;  // slots 0..sessions-1, <= the runner's
  // Absolute position of the first token after the full memory; at least
  // mem_len. 0: mem_len.
  int64_t start_position = 0;
  double temperature = 0;
  // Random tokens come from the first `head_ids` ids (0: all), but for the
  // share that comes from the rest.
  int64_t head_ids = 0;
  double tail_share = 0;
};

// Of steps that followed each other.
struct StepTimes {
  // Between one step's end and the next one's, on the host's clock; the first:
  // since its rows were handed over.
  std::vector<double> seconds;
  // StepResult::device_seconds of the same steps.
  std::vector<double> device_seconds;
};

// Share of the time in which the device ran none of the steps, from the end of
// the first to the end of the last; absent where the device does not say how
// long it took, or of fewer than two steps.
std::optional<double> IdleShare(const StepTimes& times);

// Rows of one step to score: `segment_rows` of each of the first `streams`
// sessions.
struct ScoreWork {
  int32_t streams = 1;
  int64_t segment_rows = 128;  // <= the runner's spare rows and max_rows
};
// Most streams of it in one plan, >= 1.
int32_t StreamsOfAPlan(const ScoreWork& work, const RunnerInfo& info);

// Thread-compatible. The runner outlives it and is used by nobody else.
class SessionDriver {
 public:
  // Fills slot 0 with mem_len random tokens before the start position and the
  // others with copies.
  static absl::StatusOr<SessionDriver> Create(StepRunner* runner,
                                              const DriverOptions& options);

  // `steps` decode steps of the first `sessions` sessions, as many in flight as
  // the runner takes.
  absl::StatusOr<StepTimes> Decode(int32_t sessions, int steps);

  // Scores a segment of every stream, `rounds` times, with as few steps a round
  // as the runner's max_rows allows and as many in flight as it takes.
  absl::StatusOr<StepTimes> Score(const ScoreWork& work, int rounds);

  // Feeds `rows` more tokens of slot 0 in segments of at most `segment_rows`;
  // seconds of each segment, one after the other.
  absl::StatusOr<std::vector<double>> Feed(int64_t rows, int64_t segment_rows,
                                           RowKind kind);

  // Of a session's next token.
  int64_t position(int32_t slot) const { return positions_[slot]; }

 private:
  SessionDriver(StepRunner* runner, const DriverOptions& options);

  absl::Status Fill();
  StepPlan DecodePlan(int32_t sessions, bool first);
  StepPlan ScorePlan(const ScoreWork& work, int32_t first, int32_t last);
  void AddRows(int32_t slot, int64_t count, RowKind kind, StepPlan& plan);
  // Plans 0..count-1, one after the other.
  absl::StatusOr<StepTimes> RunPlans(int count,
                                     absl::FunctionRef<StepPlan(int)> plan_of);
  int32_t RandomToken();

  StepRunner* runner_;
  DriverOptions options_;
  std::vector<int64_t> positions_;
  std::mt19937_64 random_{1};
};

}  // namespace txl
