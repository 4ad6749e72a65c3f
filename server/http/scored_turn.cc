#include "server/http/scored_turn.h"

#include "server/session/session_errors.h"

namespace txl {

absl::StatusOr<v1::GenerateRequest> TurnBehind(const v1::ScoreResponse& scores,
                                               v1::GenerateRequest turn) {
  if (turn.session_id().empty()) return turn;
  if (turn.has_expected_position() &&
      turn.expected_position() != scores.position()) {
    return PositionMismatchError(scores.position(), turn.expected_position());
  }
  turn.set_expected_position(scores.position());
  return turn;
}

}  // namespace txl
