#pragma once

// txl.v1.ModelService: facts, counters and the tokenizer.

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/service_context.h"
#include "txl/v1/model_service.grpc.pb.h"

namespace txl {

// Thread-safe. The context outlives the service.
class ModelService final
    : public v1::ModelService::WithRawCallbackMethod_GetModel<
          v1::ModelService::WithRawCallbackMethod_GetServerStatus<
              v1::ModelService::WithRawCallbackMethod_Tokenize<
                  v1::ModelService::WithRawCallbackMethod_Detokenize<
                      v1::ModelService::Service>>>> {
 public:
  explicit ModelService(const ServiceContext* context) : context_(*context) {}

  // These two answer in every phase of the server.
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* call,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetServerStatus(
      grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* call,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* call,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

 private:
  const ServiceContext& context_;
};

}  // namespace txl
