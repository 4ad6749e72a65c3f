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

// Runs checked input of a call as a kAppend or kScore turn, and ends the call.
// `service` outlives it.
void SubmitFeed(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                FeedParams params, FeedAnswer answer);

// Submits what a call's request asks for; `read` checks it.
template <typename Request>
void SubmitCall(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                absl::StatusOr<FeedParams> (*read)(const Request&,
                                                   const ModelFacts&,
                                                   const RequestLimits&),
                FeedAnswer answer) {
  Request request;
  absl::Status status = call->Parse(&request);
  NoteRequest(*call, request);
  if (status.ok()) {
    status = call->CheckSession(request.session_id());
  }
  if (!status.ok()) return call->End(status);
  absl::StatusOr<FeedParams> params =
      read(request, *service.facts, service.limits);
  if (!params.ok()) return call->End(params.status());
  SubmitFeed(service, call, kind, *std::move(params), answer);
}

}  // namespace txl
