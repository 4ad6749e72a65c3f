#pragma once

// A bucket of tokens that refills at a steady rate: what a quota of so many a
// second or a minute lets through. Time is given in.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace txl {

// Not thread-safe. Times do not go back; an earlier one counts as the last.
class TokenBucket {
 public:
  // Full at `now`. At most `limit` >= 1 tokens at once, and `limit` for each
  // `period` from then on.
  TokenBucket(int64_t limit, absl::Duration period, absl::Duration now);

  // Another limit: what is in it stays, as far as it fits.
  void SetLimit(int64_t limit, absl::Duration now);

  // Whole tokens that are in it.
  int64_t Available(absl::Duration now);
  // Takes `count` tokens where they are there.
  bool Take(int64_t count, absl::Duration now);
  // Taken tokens were not used.
  void GiveBack(int64_t count);
  // When `count` tokens will be there if none is taken; nothing: never, for
  // they are more than `limit`.
  std::optional<absl::Duration> ReadyAt(int64_t count, absl::Duration now);

 private:
  void Refill(absl::Duration now);

  int64_t limit_;
  const absl::Duration period_;
  double level_;
  absl::Duration refilled_;
};

}  // namespace txl
