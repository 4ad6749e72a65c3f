#pragma once

// How fast a run of some length goes on: its last tenth beside its first.

#include <cstdint>

#include "absl/time/time.h"

namespace txl::testing {

// A counter of tokens that only grows, read at a time.
struct TokenCount {
  absl::Time time;
  int64_t tokens = 0;
};

// Tokens a second between two readings; 0 where no time lies between.
double TokensPerSecond(const TokenCount& from, const TokenCount& to);

// Of the first and the last tenth.
struct Pace {
  double first = 0;  // tokens/s
  double last = 0;

  // Whether the last tenth is as fast as the first, but for 5 %.
  bool Holds() const { return last >= 0.95 * first; }
};

// A tenth of a shorter run is too short to tell: what turns happen to run in it
// weighs more than 5 %.
bool TellsItsPace(absl::Duration run);

}  // namespace txl::testing
