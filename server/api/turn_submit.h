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
#include "server/api/api_call.h"
#include "server/api/convert_input.h"
#include "server/api/service_context.h"
#include "server/api/unary_turn.h"
#include "server/session/turn_record.h"

namespace txl {

struct TurnStart {
  SessionName session;  // empty: a temporary one
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

// How a finished turn that is told again begins.
TurnStarted StartedAgain(const TurnRecord& record);

using FeedAnswer = AnswerMessage (*)(const TurnFinished&,
                                     const std::vector<ScoredToken>&);

// What a call feeds, and to which session.
struct FeedInput {
  SessionName session;  // empty: a temporary one
  FeedParams params;
};

// Runs checked input of a call as a kAppend or kScore turn, and ends the call.
// `service` outlives it.
void SubmitFeed(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                FeedInput input, FeedAnswer answer);

// Submits what a call's request asks for; `read` checks it.
template <typename Request>
void SubmitCall(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                absl::StatusOr<FeedParams> (*read)(const Request&,
                                                   const ModelFacts&,
                                                   const RequestLimits&),
                FeedAnswer answer) {
  Request request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->End(parsed);
  NoteRequest(*call, request);
  const absl::StatusOr<SessionName> session =
      call->SessionOf(request.session_id());
  if (!session.ok()) return call->End(session.status());
  absl::StatusOr<FeedParams> params =
      read(request, *service.facts, service.limits);
  if (!params.ok()) return call->End(params.status());
  SubmitFeed(service, call, kind, {*session, *std::move(params)}, answer);
}

}  // namespace txl
