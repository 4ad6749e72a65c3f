#include "server/api/lifecycle.h"

#include "server/base/error.h"

namespace txl {

void Lifecycle::SetReady() {
  ServerPhase expected = ServerPhase::kStarting;
  phase_.compare_exchange_strong(expected, ServerPhase::kReady);
}

void Lifecycle::SetDraining() { phase_.store(ServerPhase::kDraining); }

absl::Status Lifecycle::CheckServing() const {
  ErrorDetails details;
  switch (phase()) {
    case ServerPhase::kReady:
      return absl::OkStatus();
    case ServerPhase::kStarting:
      details.reason = "NOT_READY";
      details.retry = absl::Seconds(1);
      return MakeError(absl::StatusCode::kUnavailable, "the server is starting",
                       details);
    case ServerPhase::kDraining:
      break;
  }
  details.reason = "DRAINING";
  return MakeError(absl::StatusCode::kUnavailable, "the server is draining",
                   details);
}

}  // namespace txl
