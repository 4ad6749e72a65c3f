#include "server/rpc/unary_turn.h"

#include <iterator>
#include <utility>

#include "server/rpc/call_context.h"
#include "server/rpc/grpc_status.h"

namespace txl {

std::shared_ptr<UnaryTurn> UnaryTurn::Create(grpc::ByteBuffer* response,
                                             UnaryTurnOptions options) {
  std::shared_ptr<UnaryTurn> turn(new UnaryTurn(response, std::move(options)));
  absl::MutexLock lock(&turn->mutex_);
  turn->self_ = turn;
  return turn;
}

UnaryTurn::UnaryTurn(grpc::ByteBuffer* response, UnaryTurnOptions options)
    : response_(response), options_(std::move(options)) {}

void UnaryTurn::Started(const TurnStarted&) {}

// Only kGenerate turns sample; they have another sink.
void UnaryTurn::Token(TokenEvent) {}

void UnaryTurn::Scored(std::vector<ScoredToken> tokens) {
  absl::MutexLock lock(&mutex_);
  scored_.insert(scored_.end(), std::make_move_iterator(tokens.begin()),
                 std::make_move_iterator(tokens.end()));
}

void UnaryTurn::Finished(const TurnFinished& finished) {
  End(absl::OkStatus(), finished);
}

void UnaryTurn::Failed(const absl::Status& status) { End(status, {}); }

void UnaryTurn::End(const absl::Status& status, TurnFinished finished) {
  absl::MutexLock lock(&mutex_);
  if (end_.has_value()) return;
  end_ = status;
  // gRPC keeps the call until Finish, so `self_` is set here.
  options_.callbacks->Run(
      [self = self_, status, finished, scored = std::move(scored_)] {
        if (status.ok())
          *self->response_ = self->options_.answer(finished, scored);
        self->Finish(ToGrpcStatus(status));
      });
}

void UnaryTurn::OnCancel() {
  CancelTurn(options_.record, options_.deadline, cancel_.get());
  options_.wake();
}

void UnaryTurn::OnDone() {
  std::shared_ptr<UnaryTurn> self;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    self = std::move(self_);
    status = end_.value_or(absl::CancelledError());
  }
  EndRecord(options_.record, status);
}

}  // namespace txl
