#include "tests/end_to_end/pace.h"

namespace txl::testing {

double TokensPerSecond(const TokenCount& from, const TokenCount& to) {
  const double seconds = absl::ToDoubleSeconds(to.time - from.time);
  if (seconds <= 0) return 0;
  return static_cast<double>(to.tokens - from.tokens) / seconds;
}

bool TellsItsPace(absl::Duration run) { return run >= absl::Minutes(2); }

}  // namespace txl::testing
