#include "server/rpc/turn_submit.h"

#include <memory>
#include <utility>

#include "model/base/status_macros.h"

namespace txl {

absl::StatusOr<SessionLease> CheckedLease(
    const ServiceContext& service, const std::string& session_id,
    absl::FunctionRef<absl::Status(int64_t position)> check) {
  if (session_id.empty()) {
    TXL_RETURN_IF_ERROR(check(0));
    return service.store->AcquireTemporary();
  }
  TXL_ASSIGN_OR_RETURN(SessionLease lease, service.store->Acquire(session_id));
  TXL_RETURN_IF_ERROR(check(lease.position()));
  return lease;
}

absl::StatusOr<grpc::ServerUnaryReactor*> SubmitFeed(
    const ServiceContext& service, TurnKind kind, FeedParams params,
    grpc::ByteBuffer* response, UnaryTurnOptions options) {
  Turn turn;
  turn.kind = kind;
  const auto check = [&](int64_t position) {
    return CheckPosition(params.expected_position, position);
  };
  TXL_ASSIGN_OR_RETURN(turn.lease,
                       CheckedLease(service, params.session_id, check));
  turn.input = std::move(params.input);
  turn.top_logprobs = params.top_logprobs;
  turn.return_scored = params.return_scored;
  turn.request_id = std::move(params.request_id);
  turn.deadline = options.deadline;
  std::shared_ptr<UnaryTurn> reactor =
      UnaryTurn::Create(response, std::move(options));
  turn.sink = reactor;
  turn.cancel = reactor->cancel();
  const absl::Status status = service.scheduler->Submit(std::move(turn));
  // From here the reactor is gRPC's: it ends the call itself.
  if (!status.ok()) reactor->Failed(status);
  return static_cast<grpc::ServerUnaryReactor*>(reactor.get());
}

}  // namespace txl
