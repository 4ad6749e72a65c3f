#include "server/api/turn_submit.h"

#include <utility>

#include "model/base/status_macros.h"

namespace txl {
namespace {

// Who waits for a session.
struct Waiting {
  WantedSession wanted;
  std::function<void(absl::StatusOr<LeasedSession>)> then;
};

absl::StatusOr<LeasedSession> LeaseTemporary(const TurnContext& service,
                                             const WantedSession& wanted) {
  TXL_RETURN_IF_ERROR(CheckPosition(wanted.expected_position, 0));
  TXL_ASSIGN_OR_RETURN(SessionLease lease,
                       service.sessions->AcquireTemporary());
  return LeasedSession{std::move(lease), nullptr};
}

absl::StatusOr<LeasedSession> CheckLease(const WantedSession& wanted,
                                         absl::StatusOr<SessionLease> lease) {
  TXL_RETURN_IF_ERROR(lease.status());
  LeasedSession leased;
  leased.lease = *std::move(lease);
  TXL_ASSIGN_OR_RETURN(leased.kept, leased.lease.RecordFor(wanted.identity));
  TXL_RETURN_IF_ERROR(
      CheckPosition(wanted.expected_position, leased.kept != nullptr
                                                  ? leased.kept->start_position
                                                  : leased.lease.position()));
  return leased;
}

void AcquireSession(const TurnContext& service,
                    const std::shared_ptr<const Waiting>& waiting) {
  // Called by what let go of the session: the scheduler, most of the time.
  const auto later = [waiting, callbacks = service.callbacks](
                         absl::StatusOr<SessionLease> lease) {
    const auto held =
        std::make_shared<absl::StatusOr<SessionLease>>(std::move(lease));
    callbacks->Run([waiting, held] {
      waiting->then(CheckLease(waiting->wanted, std::move(*held)));
    });
  };
  absl::StatusOr<std::optional<SessionLease>> now =
      service.sessions->AcquireFor(waiting->wanted.session,
                                   waiting->wanted.identity, later);
  if (!now.ok()) return waiting->then(now.status());
  if (!now->has_value()) return;
  waiting->then(CheckLease(waiting->wanted, **std::move(now)));
}

// What the answer takes, about: nothing may refuse it once the turn is done.
int64_t AnswerBytes(const FeedParams& params) {
  constexpr int64_t kAnswerBytes = 64;
  constexpr int64_t kTokenBytes = 48;  // with its text, a word's
  constexpr int64_t kAlternativeBytes = 16;
  if (!params.return_scored) return kAnswerBytes;
  return kAnswerBytes +
         static_cast<int64_t>(params.input.size()) *
             (kTokenBytes + kAlternativeBytes * params.logprobs.count());
}

// Tells a sink what an earlier call of its request gave.
void TellAgain(const TurnContext& service, LeasedSession leased,
               const std::shared_ptr<UnaryTurn>& sink) {
  std::shared_ptr<const SessionClaim> claim = leased.lease.claim();
  leased.lease.Release();
  service.sessions.WhenStoredOf(
      std::move(claim),
      [sink, record = std::move(leased.kept)](const absl::Status& status) {
        if (!status.ok()) return sink->Failed(status);
        if (!record->scored.empty()) sink->Scored(record->scored);
        sink->Finished(*record->finished);
      });
}

// Submits what is fed to the session, which is free after an error.
absl::Status Feed(const TurnContext& service, TurnKind kind, FeedParams params,
                  SessionLease lease, const std::shared_ptr<UnaryTurn>& sink) {
  Turn turn;
  turn.kind = kind;
  turn.lease = std::move(lease);
  turn.input = std::move(params.input);
  turn.top_logprobs = params.logprobs.top;
  turn.logprob_ids = std::move(params.logprobs.ids);
  turn.return_scored = params.return_scored;
  turn.identity = std::move(params.identity);
  UnaryTurn::Attach(sink, &turn);
  if (kind == TurnKind::kAppend) {
    const auto tokens = static_cast<int64_t>(turn.input.size());
    TXL_RETURN_IF_ERROR(CheckRoom(params.field, tokens, turn.lease.room()));
    TXL_RETURN_IF_ERROR(turn.lease.Reserve(tokens));
    turn.sink = service.sessions.StoredSink(turn.lease, sink, turn.cancel);
  }
  return service.scheduler->Submit(std::move(turn));
}

}  // namespace

void LeaseSession(const TurnContext& service, WantedSession wanted,
                  std::function<void(absl::StatusOr<LeasedSession>)> then) {
  const absl::Status taken_on =
      service.lifecycle->CheckTenant(wanted.session.tenant());
  if (!taken_on.ok()) return then(taken_on);
  if (wanted.session.empty()) return then(LeaseTemporary(service, wanted));
  const auto waiting = std::make_shared<const Waiting>(
      Waiting{std::move(wanted), std::move(then)});
  service.sessions.With(
      waiting->wanted.session,
      [&service, waiting](const absl::Status& found) {
        found.ok() ? AcquireSession(service, waiting) : waiting->then(found);
      },
      /*acquires=*/true);
}

TurnStarted StartedAgain(const TurnRecord& record) {
  return {.position = record.start_position,
          .prompt_tokens = record.prompt_tokens,
          .seed = record.seed,
          .replayed_tokens = static_cast<int64_t>(record.tokens.size())};
}

void SubmitFeed(const TurnContext& service,
                const std::shared_ptr<ApiCall>& call, TurnKind kind,
                FeedInput input, MakeAnswer answer) {
  absl::StatusOr<ByteHold> hold =
      call->desk().HoldAnswer(AnswerBytes(input.params));
  if (!hold.ok()) return call->End(hold.status());
  call->record().prompt_tokens =
      static_cast<int64_t>(input.params.input.size());
  const auto sink =
      UnaryTurn::Create(service, call, *std::move(hold), std::move(answer));
  const auto params = std::make_shared<FeedParams>(std::move(input.params));
  LeaseSession(
      service,
      {std::move(input.session), params->identity, params->expected_position},
      [&service, kind, sink, params](absl::StatusOr<LeasedSession> leased) {
        if (!leased.ok()) return sink->Failed(leased.status());
        if (!params->session_id.empty()) sink->Found(params->session_id);
        if (leased->kept != nullptr) {
          return TellAgain(service, *std::move(leased), sink);
        }
        const absl::Status fed = Feed(service, kind, std::move(*params),
                                      std::move(leased->lease), sink);
        if (!fed.ok()) sink->Failed(fed);
      });
}

}  // namespace txl
