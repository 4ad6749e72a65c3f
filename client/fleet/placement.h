#pragma once

// Which server a session's turn goes to, as a proxy has it that remembers where
// each session was and hashes its name otherwise (deploy/haproxy).

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace txl::fleet {

// Mixes all bits of a key (SplitMix64's finalizer: Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t key);

// The session's last server where that is up; else the first that is up in an
// order of the servers that the session's name alone decides, so that sessions
// of a server that is lost spread over all others. `last`: -1 for none.
// Returns -1 where no server is up. REQUIRES: servers > 0.
int32_t PlaceTurn(uint64_t session, int32_t last, int32_t servers,
                  absl::FunctionRef<bool(int32_t)> up);

}  // namespace txl::fleet
