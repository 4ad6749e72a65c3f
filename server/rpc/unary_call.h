#pragma once

// The common path of methods with one answer.

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/rpc/open_call.h"
#include "server/rpc/raw_message.h"

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

}  // namespace txl
