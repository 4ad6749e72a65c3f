#pragma once

// How fast the server works while turns wait, and whether a deadline can still
// be met at that rate: pure of clocks.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace txl {

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

// Estimates are worth this factor: a turn is refused only where the server had
// to be more than twice as fast.
inline constexpr double kDeadlineSafety = 2;

// Whether a first token behind `tokens` cannot come within `left` >= 0.
bool IsUnreachable(double tokens, double tokens_per_second,
                   absl::Duration left);

}  // namespace txl
