#pragma once

// What turns of all kinds have in common: the lease of their session, and what
// they are to it, new or sent again.

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/api_call.h"
#include "server/api/convert_input.h"
#include "server/api/service_context.h"
#include "server/api/unary_turn.h"
#include "server/session/turn_record.h"

namespace txl {

// The session that a turn is to run on.
struct WantedSession {
  SessionName session;    // empty: a temporary one
  TurnIdentity identity;  // the turn's
  std::optional<int64_t> expected_position;
};

// The session while the turn holds its lease.
struct LeasedSession {
  SessionLease lease;
  // What an earlier call of the turn's request left; null for a new turn.
  std::shared_ptr<const TurnRecord> kept;
};

// Leases the session and calls `then` once: at once or, where the session has
// to be read or the same request still runs, later on the callback thread.
// After an error the session is free. `service` outlives all this. Errors:
// TENANT_DRAINING, POSITION_MISMATCH, those of SessionStore's Prepare,
// AcquireFor and AcquireTemporary and of SessionLease's RecordFor.
void LeaseSession(const TurnContext& service, WantedSession wanted,
                  std::function<void(absl::StatusOr<LeasedSession>)> then);

// How a finished turn that is told again begins.
TurnStarted StartedAgain(const TurnRecord& record);

// What a call feeds, and to which session.
struct FeedInput {
  SessionName session;  // empty: a temporary one
  FeedParams params;
};

// Runs checked input of a call as a kAppend or kScore turn, and ends the call.
// `service` outlives it.
void SubmitFeed(const TurnContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                FeedInput input, MakeAnswer answer);

// Submits what a call's request asks for; `read` checks it.
template <typename Request>
void SubmitCall(const TurnContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                absl::StatusOr<FeedParams> (*read)(const Request&,
                                                   const ModelFacts&,
                                                   const RequestLimits&),
                MakeAnswer answer) {
  const auto request = call->Read<Request>();
  if (!request.ok()) return call->End(request.status());
  NoteRequest(*call, **request);
  const absl::StatusOr<SessionName> session =
      call->SessionOf((*request)->session_id());
  if (!session.ok()) return call->End(session.status());
  absl::StatusOr<FeedParams> params =
      read(**request, *service.model.facts, service.model.limits);
  if (!params.ok()) return call->End(params.status());
  SubmitFeed(service, call, kind, {*session, *std::move(params)},
             std::move(answer));
}

}  // namespace txl
