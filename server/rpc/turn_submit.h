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
#include "server/rpc/call_context.h"
#include "server/rpc/convert_input.h"
#include "server/rpc/open_call.h"
#include "server/rpc/raw_message.h"
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

// How a finished turn that is told again begins.
TurnStarted StartedAgain(const TurnRecord& record);

using FeedAnswer = grpc::ByteBuffer (*)(const TurnFinished&,
                                        const std::vector<ScoredToken>&);

// Runs checked input of a call as a kAppend or kScore turn, and ends the call.
// `service` outlives it.
void SubmitFeed(const ServiceContext& service,
                const std::shared_ptr<OpenCall>& call, TurnKind kind,
                FeedParams params, FeedAnswer answer);

// Submits what a call's request asks for; `read` checks it.
template <typename Request>
void SubmitCall(const ServiceContext& service,
                const std::shared_ptr<OpenCall>& call, TurnKind kind,
                absl::StatusOr<FeedParams> (*read)(const Request&,
                                                   const ModelFacts&,
                                                   const RequestLimits&),
                FeedAnswer answer) {
  Request request;
  absl::Status status = ParseMessage(call->request(), &request);
  if (status.ok()) {
    status = CheckMetadata(call->context(), request.session_id());
  }
  if (!status.ok()) return call->End(status);
  absl::StatusOr<FeedParams> params =
      read(request, *service.facts, service.limits);
  if (!params.ok()) return call->End(params.status());
  SubmitFeed(service, call, kind, *std::move(params), answer);
}

}  // namespace txl
