#pragma once

// The common path of methods with one answer.

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// Parses, calls `handler` and ends the call.
template <typename Request, typename Response>
void AnswerCall(
    ApiCall& call,
    absl::FunctionRef<absl::Status(const Request&, Response*)> handler) {
  Request request;
  absl::Status status = call.Parse(&request);
  Response response;
  if (status.ok()) status = handler(request, &response);
  if (!status.ok()) return call.End(status);
  call.Answer(response);
}

// Ends the call with its answer once what it says of the session is on stable
// storage, as `wait` tells: WhenChanged or WhenStored.
template <typename Response>
void AnswerStored(const ServiceContext& service,
                  const std::shared_ptr<ApiCall>& call,
                  const SessionName& session, Response response,
                  decltype(&WhenStored) wait = WhenChanged) {
  const auto answer = std::make_shared<const Response>(std::move(response));
  wait(service, session, [call, answer](const absl::Status& stored) {
    stored.ok() ? call->Answer(*answer) : call->End(stored);
  });
}

// The same of a method that makes or changes a session: the one that the
// request names, empty where it names none, is in memory then, and the answer
// is sent when what it says is on stable storage. `handler` gives the session
// that its response tells of. `service` outlives the call.
template <typename Request, typename Response>
void AnswerOnSession(
    const ServiceContext& service, const std::shared_ptr<ApiCall>& call,
    absl::StatusOr<SessionName> (*handler)(const ServiceContext&, ApiCall&,
                                           const SessionName&, const Request&,
                                           Response*)) {
  const auto request = std::make_shared<Request>();
  const absl::Status parsed = call->Parse(request.get());
  if (!parsed.ok()) return call->End(parsed);
  NoteRequest(*call, *request);
  const absl::StatusOr<SessionName> session =
      call->SessionOf(request->session_id());
  if (!session.ok()) return call->End(session.status());
  WithSession(service, *session,
              [&service, call, handler, request,
               session = *session](const absl::Status& prepared) {
                if (!prepared.ok()) return call->End(prepared);
                Response response;
                const absl::StatusOr<SessionName> told =
                    handler(service, *call, session, *request, &response);
                if (!told.ok()) return call->End(told.status());
                AnswerStored(service, call, *told, std::move(response));
              });
}

}  // namespace txl
