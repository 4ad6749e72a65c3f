#include "server/api/unary_turn.h"

#include <iterator>
#include <utility>

namespace txl {
namespace {

// Answers of more tokens are built on the pool.
constexpr size_t kInlineTokens = 64;

}  // namespace

std::shared_ptr<UnaryTurn> UnaryTurn::Create(const TurnContext& service,
                                             std::shared_ptr<ApiCall> call,
                                             ByteHold hold, MakeAnswer answer) {
  std::shared_ptr<UnaryTurn> turn(
      new UnaryTurn(service, call, std::move(answer)));
  call->HandOver(turn, std::move(hold));
  return turn;
}

void UnaryTurn::Attach(const std::shared_ptr<UnaryTurn>& sink, Turn* turn) {
  turn->sink = sink;
  turn->cancel = sink->cancel_;
  turn->account = sink->account_;
  turn->prefix_tenant = sink->tenant_;
  turn->deadline = sink->deadline_;
}

UnaryTurn::UnaryTurn(const TurnContext& service, std::shared_ptr<ApiCall> call,
                     MakeAnswer answer)
    : service_(service),
      answer_(std::move(answer)),
      deadline_(call->Deadline()),
      account_(call->account()),
      tenant_(call->caller().tenant),
      clock_(call->record().clock),
      call_(std::move(call)) {
  absl::MutexLock lock(&mutex_);
  times_.queued = Now();
}

void UnaryTurn::Found(const std::string& session_id) {
  absl::MutexLock lock(&mutex_);
  if (call_ != nullptr) call_->ReturnSession(session_id);
}

void UnaryTurn::Started(const TurnStarted&) {
  absl::MutexLock lock(&mutex_);
  times_.started = Now();
}

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
  std::shared_ptr<ApiCall> call;
  std::vector<ScoredToken> scored;
  {
    absl::MutexLock lock(&mutex_);
    call = std::move(call_);
    call_ = nullptr;
    scored = std::move(scored_);
    if (call == nullptr) return;
    times_.ended = Now();
    if (status.ok()) EndWell(finished.timing, &times_);
    call->record().times = times_;
    call->record().cached_tokens = finished.cached_tokens;
  }
  if (!status.ok()) {
    service_.callbacks->Run([call, status] { call->End(status); });
    return;
  }
  const bool much = scored.size() > kInlineTokens;
  const auto answer = [call, finished, build = answer_,
                       scored = std::move(scored)] {
    call->Answer(*build(finished, scored));
  };
  if (!much) return service_.callbacks->Run(answer);
  // The turn is done and its tokens are fed: the client must hear of it,
  // however much there is to do.
  service_.work->Run(call->peer(), [answer](const absl::Status&) { answer(); });
}

void UnaryTurn::OnCancel() {
  std::shared_ptr<ApiCall> call;
  {
    absl::MutexLock lock(&mutex_);
    call = call_;
  }
  if (call == nullptr) return;
  CancelTurn(call->record(), deadline_, cancel_.get());
  service_.scheduler->Wake();
}

}  // namespace txl
