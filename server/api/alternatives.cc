#include "server/api/alternatives.h"

#include <utility>

#include "model/base/status_macros.h"
#include "server/api/convert_alternatives.h"
#include "server/api/turn_submit.h"
#include "server/api/unary_turn.h"

namespace txl {
namespace {

// What the call has until its answer is made.
struct Work {
  AlternativesParams params;
  std::unique_ptr<Detokenizer> detokenizer;  // behind the session
};

// `session`: the one that the request names is said here.
absl::StatusOr<AlternativesParams> ReadAlternativesCall(
    const ServiceContext& service, ApiCall& call, SessionName* session) {
  v1::ScoreAlternativesRequest request;
  TXL_RETURN_IF_ERROR(call.Parse(&request));
  TXL_ASSIGN_OR_RETURN(*session, call.SessionOf(request.session_id()));
  return ReadAlternatives(request, *service.facts, service.limits);
}

// What scores and answer take, about: nothing may refuse the answer once the
// turn is done.
int64_t AnswerBytes(const AlternativesParams& params) {
  constexpr int64_t kAlternativeBytes = 64;
  constexpr int64_t kTokenBytes = 48;  // with its text, a word's
  const int64_t token = static_cast<int64_t>(sizeof(ScoredToken)) +
                        (params.return_tokens ? kTokenBytes : 0);
  return kAlternativeBytes * static_cast<int64_t>(params.alternatives.size()) +
         token * params.tokens();
}

UnaryTurnOptions TurnOptions(const ServiceContext& service, ApiCall& call,
                             ByteHold hold, std::shared_ptr<Work> work) {
  UnaryTurnOptions options;
  options.answer = [work = std::move(work)](
                       const TurnFinished&,
                       const std::vector<ScoredToken>& scored) {
    return std::make_unique<v1::ScoreAlternativesResponse>(
        WriteAlternatives(work->params, work->detokenizer.get(), scored));
  };
  options.deadline = call.Deadline();
  options.wake = [scheduler = service.scheduler] { scheduler->Wake(); };
  options.callbacks = service.callbacks;
  options.work = service.work;
  options.hold = std::move(hold);
  return options;
}

void RunTurn(const ServiceContext& service, Work& work, SessionLease lease,
             const std::shared_ptr<UnaryTurn>& sink) {
  if (work.params.return_tokens) work.detokenizer = lease.CloneDetokenizer();
  Turn turn;
  turn.kind = TurnKind::kAlternatives;
  turn.lease = std::move(lease);
  turn.input = work.params.context;
  turn.alternatives = work.params.alternatives;
  turn.sink = sink;
  turn.cancel = sink->cancel();
  turn.account = sink->account();
  turn.deadline = sink->deadline();
  const absl::Status status = service.scheduler->Submit(std::move(turn));
  if (!status.ok()) sink->Failed(status);
}

}  // namespace

void ScoreAlternatives(const ServiceContext& service,
                       const std::shared_ptr<ApiCall>& call) {
  TurnStart start;
  absl::StatusOr<AlternativesParams> params =
      ReadAlternativesCall(service, *call, &start.session);
  if (!params.ok()) return call->End(params.status());
  absl::StatusOr<ByteHold> hold = call->desk().HoldAnswer(AnswerBytes(*params));
  if (!hold.ok()) return call->End(hold.status());
  call->record().prompt_tokens = params->tokens();
  const auto work = std::make_shared<Work>();
  work->params = *std::move(params);
  const auto sink = UnaryTurn::Create(
      call, TurnOptions(service, *call, *std::move(hold), work));
  start.fail = [sink](const absl::Status& status) { sink->Failed(status); };
  start.run = [&service, sink, work](SessionLease lease,
                                     std::shared_ptr<const TurnRecord>) {
    const std::string& session_id = work->params.session_id;
    if (!session_id.empty()) sink->Found(session_id);
    RunTurn(service, *work, std::move(lease), sink);
  };
  StartTurn(service, std::move(start));
}

}  // namespace txl
