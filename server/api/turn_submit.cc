#include "server/api/turn_submit.h"

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
             const std::shared_ptr<UnaryTurn>& sink) {
  turn.sink = sink;
  turn.cancel = sink->cancel();
  if (turn.kind == TurnKind::kAppend && !turn.lease.name().empty()) {
    turn.sink = StoredSink(service, turn.lease, sink, turn.cancel);
  }
  turn.account = sink->account();
  turn.deadline = sink->deadline();
  const absl::Status status = service.scheduler->Submit(std::move(turn));
  if (!status.ok()) sink->Failed(status);
}

// What the answer takes, about: nothing may refuse it once the turn is done.
int64_t AnswerBytes(const FeedParams& params) {
  constexpr int64_t kAnswerBytes = 64;
  constexpr int64_t kTokenBytes = 48;  // with its text, a word's
  constexpr int64_t kAlternativeBytes = 16;
  if (!params.return_scored) return kAnswerBytes;
  return kAnswerBytes +
         static_cast<int64_t>(params.input.size()) *
             (kTokenBytes + kAlternativeBytes * params.top_logprobs);
}

// Tells a sink again what a finished turn gave.
void Replay(const TurnRecord& record, UnaryTurn* sink) {
  if (!record.scored.empty()) sink->Scored(record.scored);
  sink->Finished(*record.finished);
}

void StartPrepared(const ServiceContext& service,
                   const std::shared_ptr<const TurnStart>& shared) {
  // Called by whoever let go of the session: the scheduler, most of the time.
  const auto later = [shared, callbacks = service.callbacks](
                         absl::StatusOr<SessionLease> lease) {
    const auto held =
        std::make_shared<absl::StatusOr<SessionLease>>(std::move(lease));
    callbacks->Run([shared, held] { StartWith(*shared, std::move(*held)); });
  };
  absl::StatusOr<std::optional<SessionLease>> now =
      service.store->AcquireFor(shared->session, shared->identity, later);
  if (!now.ok()) return shared->fail(now.status());
  if (now->has_value()) StartWith(*shared, **std::move(now));
}

}  // namespace

void StartTurn(const ServiceContext& service, TurnStart start) {
  const absl::Status taken_on =
      service.lifecycle->CheckTenant(start.session.tenant());
  if (!taken_on.ok()) return start.fail(taken_on);
  if (start.session.empty()) return StartTemporary(service, start);
  const auto shared = std::make_shared<const TurnStart>(std::move(start));
  WithSession(
      service, shared->session,
      [&service, shared](const absl::Status& status) {
        status.ok() ? StartPrepared(service, shared) : shared->fail(status);
      },
      /*acquires=*/true);
}

TurnStarted StartedAgain(const TurnRecord& record) {
  TurnStarted started;
  started.position = record.start_position;
  started.prompt_tokens = record.prompt_tokens;
  started.seed = record.seed;
  started.replayed_tokens = static_cast<int64_t>(record.tokens.size());
  return started;
}

void SubmitFeed(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                FeedInput input, FeedAnswer answer) {
  FeedParams& params = input.params;
  absl::StatusOr<ByteHold> hold = call->desk().HoldAnswer(AnswerBytes(params));
  if (!hold.ok()) return call->End(hold.status());
  call->record().prompt_tokens = static_cast<int64_t>(params.input.size());
  UnaryTurnOptions options;
  options.answer = answer;
  options.deadline = call->Deadline();
  options.wake = [scheduler = service.scheduler] { scheduler->Wake(); };
  options.callbacks = service.callbacks;
  options.work = service.work;
  options.hold = *std::move(hold);
  const auto sink = UnaryTurn::Create(call, std::move(options));
  TurnStart start;
  start.session = std::move(input.session);
  start.identity = params.identity;
  start.expected_position = params.expected_position;
  start.fail = [sink](const absl::Status& status) { sink->Failed(status); };
  start.run = [&service, kind, sink, params = std::move(params)](
                  SessionLease lease,
                  std::shared_ptr<const TurnRecord> record) {
    if (!params.session_id.empty()) sink->Found(params.session_id);
    if (record != nullptr) {
      const SessionName session = lease.name();
      lease.Release();
      WhenStored(service, session, [sink, record](const absl::Status& status) {
        status.ok() ? Replay(*record, sink.get()) : sink->Failed(status);
      });
      return;
    }
    if (kind == TurnKind::kAppend) {
      const auto tokens = static_cast<int64_t>(params.input.size());
      absl::Status status = CheckRoom(params.field, tokens, lease.room());
      if (status.ok()) status = lease.Reserve(tokens);
      if (!status.ok()) {
        lease.Release();
        return sink->Failed(status);
      }
    }
    Turn turn;
    turn.kind = kind;
    turn.lease = std::move(lease);
    turn.input = params.input;
    turn.top_logprobs = params.top_logprobs;
    turn.return_scored = params.return_scored;
    turn.identity = params.identity;
    RunFeed(service, std::move(turn), sink);
  };
  StartTurn(service, std::move(start));
}

}  // namespace txl
