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

// The same of a method that changes or reads a session: the one that the
// request names is in memory then, and the answer is sent when what it says is
// on stable storage. `service` outlives the call.
template <typename Request, typename Response>
void AnswerOnSession(const ServiceContext& service,
                     const std::shared_ptr<ApiCall>& call,
                     absl::Status (*handler)(const ServiceContext&, ApiCall&,
                                             const Request&, Response*)) {
  const auto request = std::make_shared<Request>();
  absl::Status status = call->Parse(request.get());
  NoteRequest(*call, *request);
  if (status.ok()) {
    status = call->CheckSession(request->session_id());
  }
  if (!status.ok()) return call->End(status);
  WithSession(service, call->Named(request->session_id()),
              [&service, call, handler, request](const absl::Status& prepared) {
                Response response;
                absl::Status status = prepared;
                if (status.ok()) {
                  status = handler(service, *call, *request, &response);
                }
                if (!status.ok()) return call->End(status);
                AnswerStored(service, call, call->Named(request->session_id()),
                             std::move(response));
              });
}

}  // namespace txl
