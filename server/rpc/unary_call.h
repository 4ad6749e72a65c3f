#pragma once

// Methods that answer at once, on gRPC's own thread.

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/rpc/call_record.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/raw_message.h"
#include "server/rpc/service_context.h"

namespace txl {

// Ends an unary call now.
inline grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* call,
                                           const CallRecord& record,
                                           const absl::Status& status) {
  EndRecord(record, status);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// Parses, calls `handler`, serialises and finishes. Refuses with UNAVAILABLE
// unless the server serves or `always` is true.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* AnswerUnary(
    const ServiceContext& service, const char* method,
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request_bytes,
    grpc::ByteBuffer* response_bytes,
    absl::FunctionRef<absl::Status(const Request&, Response*)> handler,
    bool always = false) {
  const CallRecord record = StartRecord(method, service.clock, service.metrics);
  absl::Status status =
      always ? absl::OkStatus() : service.lifecycle->CheckServing();
  Request request;
  if (status.ok()) status = ParseMessage(*request_bytes, &request);
  Response response;
  if (status.ok()) status = handler(request, &response);
  if (status.ok()) *response_bytes = SerializeMessage(response);
  return FinishNow(call, record, status);
}

}  // namespace txl
