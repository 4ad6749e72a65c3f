#pragma once

// Why a turn may not go on, whatever its reader does: a pure function.

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/scheduler/turn.h"

namespace txl {

// Nothing, or how the turn ends: its session is deleted, the same request came
// again, its client is gone, or at `now` its deadline or the server's
// `longest_turn` since `submitted` has passed. Times are Clock::Monotonic.
std::optional<absl::Status> EndOf(const Turn& turn, absl::Duration submitted,
                                  absl::Duration longest_turn,
                                  absl::Duration now);

}  // namespace txl
