#pragma once

// Every way in which a turn fails, as clients see it (docs: the status table of
// the public API).

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/scheduler/turn.h"

namespace txl {

absl::Status TurnCancelled();
absl::Status TurnDeadlineExceeded();
// DEADLINE_EXCEEDED, DEADLINE_UNREACHABLE: it would pass before the turn began.
absl::Status DeadlineUnreachable();
// DEADLINE_EXCEEDED too; the message names the setting.
absl::Status TurnTooLong(absl::Duration longest_turn);
absl::Status ClientTooSlow();   // RESOURCE_EXHAUSTED, CLIENT_TOO_SLOW
absl::Status ServerDraining();  // UNAVAILABLE, DRAINING
absl::Status QueueFull(absl::Duration retry);  // RESOURCE_EXHAUSTED
// QUEUE_FULL too: it was queued and no slot came within `limit`.
absl::Status QueuedTooLong(absl::Duration limit, absl::Duration retry);
absl::Status NoSessionMemory(absl::Duration retry);  // RESOURCE_EXHAUSTED
// ABORTED, RESUME_MISMATCH: what the client has is not what the turn gave.
absl::Status ResumeMismatch();
// INTERNAL, STEP_FAILED: this turn only. `what` is what was done, `cause` the
// device's own status.
absl::Status StepFailed(absl::string_view what, const absl::Status& cause);

// Why a turn may not go on, whatever its reader does: a pure function.

// Nothing, or how the turn ends: its session is deleted, the same request came
// again, its client is gone, or at `now` its deadline or the server's
// `longest_turn` since `submitted` has passed. Times are Clock::Monotonic.
std::optional<absl::Status> EndOf(const Turn& turn, absl::Duration submitted,
                                  absl::Duration longest_turn,
                                  absl::Duration now);

}  // namespace txl
