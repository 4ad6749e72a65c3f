#pragma once

// txl.v1.GenerationService: Generate and Score as turns of the scheduler.

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/service_context.h"
#include "txl/v1/generation_service.grpc.pb.h"

namespace txl {

// Thread-safe. The context outlives the service.
class GenerationService final
    : public v1::GenerationService::WithRawCallbackMethod_Generate<
          v1::GenerationService::WithRawCallbackMethod_Score<
              v1::GenerationService::Service>> {
 public:
  explicit GenerationService(const ServiceContext* context)
      : context_(*context) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(
      grpc::CallbackServerContext* call,
      const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Score(grpc::CallbackServerContext* call,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;

 private:
  const ServiceContext& context_;
};

}  // namespace txl
