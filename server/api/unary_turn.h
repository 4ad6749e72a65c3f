#pragma once

// The answer of AppendTokens and Score: collects what the scheduler reports and
// ends the call once. Bounded by the limit on input tokens.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"
#include "server/scheduler/turn.h"

namespace txl {

// Makes the answer; called once, on the callback thread or, when there is much
// to it, on the pool.
using MakeAnswer = std::function<AnswerMessage(
    const TurnFinished&, const std::vector<ScoredToken>&)>;

class UnaryTurn final : public TokenSink, public CallEvents {
 public:
  // Takes the call over. `hold`: room for the answer. `service` outlives it.
  static std::shared_ptr<UnaryTurn> Create(const TurnContext& service,
                                           std::shared_ptr<ApiCall> call,
                                           ByteHold hold, MakeAnswer answer);

  // Has the turn's events come here; it is the call's.
  static void Attach(const std::shared_ptr<UnaryTurn>& sink, Turn* turn);
  // A session that there is: returned to the client.
  void Found(const std::string& session_id);

  // TokenSink.
  void Started(const TurnStarted& started) override;
  void Token(TokenEvent event) override;
  void Scored(std::vector<ScoredToken> tokens) override;
  void Finished(const TurnFinished& finished) override;
  void Failed(const absl::Status& status) override;
  int Unsent() const override { return 0; }

  // CallEvents.
  void OnCancel() override;
  void OnDone() override {}

 private:
  UnaryTurn(const TurnContext& service, std::shared_ptr<ApiCall> call,
            MakeAnswer answer);
  void End(const absl::Status& status, TurnFinished finished);
  absl::Duration Now() const { return clock_->Monotonic(); }

  const TurnContext& service_;
  const MakeAnswer answer_;
  const std::optional<absl::Duration> deadline_;  // on the record's clock
  TenantAccount* const account_;
  const std::string tenant_;
  Clock* const clock_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  absl::Mutex mutex_;
  std::shared_ptr<ApiCall> call_ ABSL_GUARDED_BY(mutex_);  // until its end
  std::vector<ScoredToken> scored_ ABSL_GUARDED_BY(mutex_);
  TurnTimes times_ ABSL_GUARDED_BY(mutex_);
};

// The common path of methods with one answer.

// Parses, calls `handler` and ends the call.
template <typename Request, typename Response>
void AnswerCall(
    ApiCall& call,
    absl::FunctionRef<absl::Status(const Request&, Response*)> handler) {
  const auto request = call.Read<Request>();
  if (!request.ok()) return call.End(request.status());
  Response response;
  const absl::Status status = handler(**request, &response);
  if (!status.ok()) return call.End(status);
  call.Answer(response);
}

// For WhenStored and WhenChanged: ends the call with its answer, or with what
// kept it from stable storage.
template <typename Response>
std::function<void(const absl::Status&)> AnswerIfStored(
    const std::shared_ptr<ApiCall>& call, Response response) {
  return [call, answer = std::make_shared<const Response>(std::move(response))](
             const absl::Status& stored) {
    stored.ok() ? call->Answer(*answer) : call->End(stored);
  };
}

// Answers a call of a method that creates or changes a session. The session
// that the request names, if any, is brought into memory first, and the answer
// is sent once what it says is on stable storage. `handler` gives the session
// that its response tells of. `service` outlives the call.
template <typename Request, typename Response>
void AnswerOnSession(
    const TurnContext& service, const std::shared_ptr<ApiCall>& call,
    absl::StatusOr<SessionName> (*handler)(const TurnContext&, ApiCall&,
                                           const SessionName&, const Request&,
                                           Response*)) {
  const auto request = call->Read<Request>();
  if (!request.ok()) return call->End(request.status());
  NoteRequest(*call, **request);
  const absl::StatusOr<SessionName> session =
      call->SessionOf((*request)->session_id());
  if (!session.ok()) return call->End(session.status());
  service.sessions.With(
      *session, [&service, call, handler, request = *request,
                 session = *session](const absl::Status& prepared) {
        if (!prepared.ok()) return call->End(prepared);
        Response response;
        const absl::StatusOr<SessionName> told =
            handler(service, *call, session, *request, &response);
        if (!told.ok()) return call->End(told.status());
        service.sessions.WhenChanged(*told,
                                     AnswerIfStored(call, std::move(response)));
      });
}

}  // namespace txl
