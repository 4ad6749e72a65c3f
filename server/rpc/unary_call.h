#pragma once

// The common path of methods with one answer.

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/rpc/call_context.h"
#include "server/rpc/open_call.h"
#include "server/rpc/raw_message.h"
#include "server/rpc/service_context.h"

namespace txl {

// Parses, calls `handler`, serialises and ends the call.
template <typename Request, typename Response>
void AnswerCall(
    OpenCall& call,
    absl::FunctionRef<absl::Status(const Request&, Response*)> handler) {
  Request request;
  absl::Status status = ParseMessage(call.request(), &request);
  Response response;
  if (status.ok()) status = handler(request, &response);
  if (!status.ok()) return call.End(status);
  call.Answer(SerializeMessage(response));
}

// Ends the call with its answer once what it says is on stable storage.
inline void AnswerStored(const ServiceContext& service,
                         const std::shared_ptr<OpenCall>& call,
                         const grpc::ByteBuffer& answer) {
  WhenStored(service, [call, answer](const absl::Status& stored) {
    stored.ok() ? call->Answer(answer) : call->End(stored);
  });
}

// The same of a method that changes or reads a session: the one that the
// request names is in memory then, and the answer is sent when what it says is
// on stable storage. `service` outlives the call.
template <typename Request, typename Response>
void AnswerOnSession(const ServiceContext& service,
                     const std::shared_ptr<OpenCall>& call,
                     absl::Status (*handler)(const ServiceContext&, OpenCall&,
                                             const Request&, Response*)) {
  const auto request = std::make_shared<Request>();
  absl::Status status = ParseMessage(call->request(), request.get());
  if (status.ok()) {
    status = CheckMetadata(call->context(), request->session_id());
  }
  if (!status.ok()) return call->End(status);
  WithSession(service, request->session_id(),
              [&service, call, handler, request](const absl::Status& prepared) {
                Response response;
                absl::Status status = prepared;
                if (status.ok()) {
                  status = handler(service, *call, *request, &response);
                }
                if (!status.ok()) return call->End(status);
                AnswerStored(service, call, SerializeMessage(response));
              });
}

}  // namespace txl
