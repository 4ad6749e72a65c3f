#pragma once

// txl.v1.SessionService on the session store; AppendTokens is a turn.

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/statusor.h"
#include "server/rpc/call_record.h"
#include "server/rpc/service_context.h"
#include "txl/v1/session_service.grpc.pb.h"

namespace txl {

using RawSessionService =
    v1::SessionService::WithRawCallbackMethod_CreateSession<
        v1::SessionService::WithRawCallbackMethod_GetSession<
            v1::SessionService::WithRawCallbackMethod_ListSessions<
                v1::SessionService::WithRawCallbackMethod_DeleteSession<
                    v1::SessionService::WithRawCallbackMethod_AppendTokens<
                        v1::SessionService::Service>>>>>;

// Thread-safe. The context outlives the service.
class SessionService final : public RawSessionService {
 public:
  explicit SessionService(const ServiceContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* CreateSession(grpc::CallbackServerContext* call,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetSession(grpc::CallbackServerContext* call,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* call,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteSession(grpc::CallbackServerContext* call,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* AppendTokens(grpc::CallbackServerContext* call,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;

 private:
  absl::StatusOr<grpc::ServerUnaryReactor*> Append(
      grpc::CallbackServerContext* call, const grpc::ByteBuffer& request,
      grpc::ByteBuffer* response, CallRecord* record);

  const ServiceContext& context_;
};

}  // namespace txl
