#include "server/rpc/turn_submit.h"

#include <utility>

namespace txl {
namespace {

void StartTemporary(const ServiceContext& service, const TurnStart& start) {
  const absl::Status position = CheckPosition(start.expected_position, 0);
  if (!position.ok()) return start.fail(position);
  absl::StatusOr<SessionLease> lease = service.store->AcquireTemporary();
  if (!lease.ok()) return start.fail(lease.status());
  start.run(*std::move(lease), nullptr);
}

void StartWith(const TurnStart& start, absl::StatusOr<SessionLease> lease) {
  if (!lease.ok()) return start.fail(lease.status());
  absl::StatusOr<std::shared_ptr<const TurnRecord>> record =
      lease->RecordFor(start.identity);
  absl::Status status = record.status();
  if (status.ok()) {
    status = CheckPosition(
        start.expected_position,
        *record != nullptr ? (*record)->start_position : lease->position());
  }
  if (status.ok()) return start.run(*std::move(lease), *std::move(record));
  // The session is free before the client hears of it.
  lease->Release();
  start.fail(status);
}

void RunFeed(const ServiceContext& service, Turn turn,
             const std::shared_ptr<UnaryTurn>& reactor) {
  turn.sink = reactor;
  turn.cancel = reactor->cancel();
  turn.deadline = reactor->deadline();
  const absl::Status status = service.scheduler->Submit(std::move(turn));
  if (!status.ok()) reactor->Failed(status);
}

}  // namespace

void StartTurn(const ServiceContext& service, TurnStart start) {
  if (start.session_id.empty()) return StartTemporary(service, start);
  const auto shared = std::make_shared<const TurnStart>(std::move(start));
  // Called by whoever let go of the session: the scheduler, most of the time.
  const auto later = [shared, callbacks = service.callbacks](
                         absl::StatusOr<SessionLease> lease) {
    const auto held =
        std::make_shared<absl::StatusOr<SessionLease>>(std::move(lease));
    callbacks->Run([shared, held] { StartWith(*shared, std::move(*held)); });
  };
  absl::StatusOr<std::optional<SessionLease>> now =
      service.store->AcquireFor(shared->session_id, shared->identity, later);
  if (!now.ok()) return shared->fail(now.status());
  if (now->has_value()) StartWith(*shared, **std::move(now));
}

void Replay(const TurnRecord& record, TokenSink* sink) {
  TurnStarted started;
  started.position = record.start_position;
  started.prompt_tokens = record.prompt_tokens;
  started.seed = record.seed;
  started.replayed_tokens = static_cast<int64_t>(record.tokens.size());
  sink->Started(started);
  for (const TokenEvent& token : record.tokens) sink->Token(token);
  if (!record.scored.empty()) sink->Scored(record.scored);
  sink->Finished(*record.finished);
}

grpc::ServerUnaryReactor* SubmitFeed(const ServiceContext& service,
                                     TurnKind kind, FeedParams params,
                                     std::shared_ptr<UnaryTurn> reactor) {
  TurnStart start;
  start.session_id = params.session_id;
  start.identity = params.identity;
  start.expected_position = params.expected_position;
  start.fail = [reactor](const absl::Status& status) {
    reactor->Failed(status);
  };
  start.run = [&service, kind, reactor, params = std::move(params)](
                  SessionLease lease,
                  std::shared_ptr<const TurnRecord> record) {
    if (record != nullptr) {
      lease.Release();
      return Replay(*record, reactor.get());
    }
    Turn turn;
    turn.kind = kind;
    turn.lease = std::move(lease);
    turn.input = params.input;
    turn.top_logprobs = params.top_logprobs;
    turn.return_scored = params.return_scored;
    turn.identity = params.identity;
    RunFeed(service, std::move(turn), reactor);
  };
  StartTurn(service, std::move(start));
  // From here the reactor is gRPC's: it ends the call itself.
  return reactor.get();
}

}  // namespace txl
