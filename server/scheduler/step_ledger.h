#pragma once

// Books steps, rows and tokens so that the laws of metrics.h hold in every
// snapshot. A row is booked when its fate is known: kept with its turn's
// commit, or discarded.

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
  // Rows that nobody keeps, and how many tokens they had sampled.
  void Discarded(const RowCounts& rows, int64_t tokens_sampled);
  void TurnEnded(const TurnEnd& end);

 private:
  Metrics* const metrics_;
};

}  // namespace txl
