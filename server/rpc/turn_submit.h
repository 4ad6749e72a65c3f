#pragma once

// The common path of every turn: its session's lease, what it is to that
// session (new, or sent again), its position.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/convert_input.h"
#include "server/rpc/service_context.h"
#include "server/rpc/unary_turn.h"
#include "server/session/turn_record.h"

namespace txl {

struct TurnStart {
  std::string session_id;  // empty: a temporary session
  TurnIdentity identity;
  std::optional<int64_t> expected_position;
  // Exactly one of them is called, once: now or, where the same request runs
  // already, on the callback thread when that turn has ended. `record`: what
  // an earlier call of the same request left; null for a new turn.
  std::function<void(SessionLease lease,
                     std::shared_ptr<const TurnRecord> record)>
      run;
  std::function<void(const absl::Status&)> fail;
};

void StartTurn(const ServiceContext& service, TurnStart start);

// Tells a sink again what a finished turn gave.
void Replay(const TurnRecord& record, TokenSink* sink);

// Runs checked input as a kAppend or kScore turn. Answers and refusals (busy,
// queue full, ...) come through the reactor. `service` outlives the call.
grpc::ServerUnaryReactor* SubmitFeed(const ServiceContext& service,
                                     TurnKind kind, FeedParams params,
                                     std::shared_ptr<UnaryTurn> reactor);

}  // namespace txl
