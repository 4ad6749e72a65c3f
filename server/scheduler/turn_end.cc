#include "server/scheduler/turn_end.h"

#include "server/scheduler/turn_errors.h"
#include "server/session/session_errors.h"

namespace txl {

std::optional<absl::Status> EndOf(const Turn& turn, absl::Duration submitted,
                                  absl::Duration longest_turn,
                                  absl::Duration now) {
  if (turn.lease.delete_requested()) return SessionDeletedError();
  if (const auto moved = turn.lease.moved()) return moved;
  if (turn.lease.superseded()) return SupersededError();
  if (turn.cancel != nullptr) {
    switch (turn.cancel->why()) {
      case CancelToken::Why::kNone:
        break;
      case CancelToken::Why::kCancelled:
        return TurnCancelled();
      case CancelToken::Why::kDeadline:
        return TurnDeadlineExceeded();
    }
  }
  if (turn.deadline.has_value() && now >= *turn.deadline) {
    return TurnDeadlineExceeded();
  }
  if (now - submitted >= turn.longest) return TurnOverQuota(turn.longest);
  if (now - submitted >= longest_turn) return TurnTooLong(longest_turn);
  return std::nullopt;
}

}  // namespace txl
