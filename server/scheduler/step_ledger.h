#pragma once

// Books steps, rows and tokens so that the laws of metrics.h hold in every
// snapshot. A row is booked when its fate is known: kept with its turn's
// commit, or discarded.

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/engine/step_runner.h"
#include "server/metrics/metrics.h"

namespace txl {

struct RowCounts {
  int64_t decode = 0;
  int64_t prefill = 0;
  int64_t score = 0;
  int64_t rebuild = 0;

  void Add(RowKind kind);
  int64_t total() const { return decode + prefill + score + rebuild; }
};

// What stood in a step.
struct StepShape {
  bool decode = false;   // a row that samples
  bool streams = false;  // running streams
  bool prompts = false;  // input, or a state on its way in
  int64_t turns = 0;
  int64_t tokens = 0;   // rows through the layers
  int64_t guesses = 0;  // of them, rows that feed guesses

  StepKind kind() const;
};

// What became of the guesses of a step.
struct GuessCounts {
  int64_t guessed = 0;
  int64_t accepted = 0;
  int64_t steps_saved = 0;  // the most that one stream had accepted
};

// A token that was handed to its stream.
struct TokenTime {
  bool first = false;         // of its turn
  double seconds = 0;         // since submission; else since the last one
  int64_t prompt_tokens = 0;  // that the first one committed
  int32_t tenant = 0;         // its place in Snapshot::tenants
};

// A turn that has ended, however.
struct TurnEnd {
  absl::StatusCode code = absl::StatusCode::kOk;
  absl::string_view reason = "";  // of the snapshot's turns_ended
  double seconds = 0;             // since submission
  int64_t prompt_tokens = 0;
  int32_t tenant = 0;  // as TokenTime's
  // GENERATE only.
  std::optional<int64_t> generated_tokens = std::nullopt;
  // Known from the second generated token on.
  std::optional<double> seconds_per_token = std::nullopt;
  // Time since the turn was cancelled.
  std::optional<double> cancelled_seconds = std::nullopt;
};

class StepLedger {
 public:
  explicit StepLedger(Metrics* metrics) : metrics_(metrics) {}

  // A step that was collected at `now`. Null: it failed.
  void Step(const StepShape& shape, const StepResult* result, absl::Time now);
  void Guesses(const GuessCounts& counts);
  // Rows that their turn keeps, with the token that they gave its stream.
  void KeptToken(const RowCounts& rows, const TokenTime& token);
  // Rows of the whole input of a turn that does not generate.
  void KeptInput(const RowCounts& rows, int64_t prompt_tokens, int32_t tenant);
  // Rows that no turn keeps, and how many tokens they had sampled.
  void Discarded(const RowCounts& rows, int64_t tokens_sampled);
  void TurnEnded(const TurnEnd& end);

 private:
  Metrics* const metrics_;
};

// What a row costs a step, as the steps so far show it.

// Seconds of a step of streams = fixed + streams x stream + guesses x guess,
// by least squares over the last hundred steps or so. What these do not tell
// apart is held by two weak assumptions: a stream's row costs what a step costs
// without any, a guess half of that (it reads a memory that its stream's row
// reads too). Thread-compatible.
class StepCost {
 public:
  // A step of `streams` >= 1 rows that continue streams, and `guesses` >= 0
  // more of the same streams. One that took more than kMost times what was
  // expected counts as that: another program had the processor.
  void Note(int64_t streams, int64_t guesses, double seconds);

  bool known() const { return noted_ > 0; }
  // REQUIRES: known.
  double Seconds(int64_t streams, int64_t guesses) const;
  double OfGuess() const { return cost_[2]; }  // >= 0

  static constexpr double kMost = 4;

 private:
  using Vector = std::array<double, 3>;  // fixed, stream, guess

  void Solve();

  int64_t noted_ = 0;
  std::array<Vector, 3> squares_{};
  Vector sums_{};
  Vector cost_{};
};

// How fast the server works while turns wait, and whether a deadline can still
// be met at that rate: pure of clocks.

// Not thread-safe.
class ServiceRate {
 public:
  // So much of the time in which turns waited is looked at together.
  static constexpr absl::Duration kWindow = absl::Seconds(1);

  // A step ended at `now`, Clock::Monotonic, with so many tokens through the
  // layers; `waiting`: turns wait for a slot.
  void NoteStep(int64_t tokens, bool waiting, absl::Duration now);
  // A turn ended that generated so many tokens.
  void NoteTurn(int64_t generated);

  // The rate of the fastest of the last windows: it follows a faster one at
  // once, slower ones by half. Nothing until turns have waited for a window.
  std::optional<double> tokens_per_second() const { return rate_; }
  // Tokens that a turn generates, on average over the last ones, at most
  // `max_tokens`.
  double Expected(int64_t max_tokens) const;

 private:
  std::optional<absl::Duration> since_;  // of a step behind which turns waited
  absl::Duration busy_;                  // of the window, so far
  int64_t tokens_ = 0;                   // in it
  std::optional<double> rate_;
  double generated_ = 0;
};

// Estimates are worth this factor: a turn is refused only where the server
// would have to be more than twice as fast.
inline constexpr double kDeadlineSafety = 2;

// Whether a first token behind `tokens` cannot come within `left` >= 0.
bool IsUnreachable(double tokens, double tokens_per_second,
                   absl::Duration left);

}  // namespace txl
