#include "server/rpc/model_service.h"

#include <vector>

#include "model/base/status_macros.h"
#include "server/rpc/convert_input.h"
#include "server/rpc/convert_output.h"
#include "server/rpc/unary_call.h"

namespace txl {

grpc::ServerUnaryReactor* ModelService::GetModel(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::GetModelRequest, v1::GetModelResponse>(
      context_, "txl.v1.ModelService/GetModel", call, request, response,
      [&](const auto&, auto* out) {
        WriteModel(context_, out);
        return absl::OkStatus();
      },
      /*always=*/true);
}

grpc::ServerUnaryReactor* ModelService::GetServerStatus(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::GetServerStatusRequest, v1::GetServerStatusResponse>(
      context_, "txl.v1.ModelService/GetServerStatus", call, request, response,
      [&](const auto&, auto* out) {
        WriteStatus(ReadStatus(context_), out);
        return absl::OkStatus();
      },
      /*always=*/true);
}

grpc::ServerUnaryReactor* ModelService::Tokenize(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::TokenizeRequest, v1::TokenizeResponse>(
      context_, "txl.v1.ModelService/Tokenize", call, request, response,
      [&](const auto& in, auto* out) -> absl::Status {
        TXL_ASSIGN_OR_RETURN(
            const std::vector<int32_t> ids,
            ReadTokenize(in, *context_.facts, context_.limits));
        out->mutable_token_ids()->Add(ids.begin(), ids.end());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* ModelService::Detokenize(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::DetokenizeRequest, v1::DetokenizeResponse>(
      context_, "txl.v1.ModelService/Detokenize", call, request, response,
      [&](const auto& in, auto* out) -> absl::Status {
        TXL_ASSIGN_OR_RETURN(
            const std::vector<int32_t> ids,
            ReadDetokenize(in, *context_.facts, context_.limits));
        out->set_text(context_.facts->vocabulary->Decode(ids));
        return absl::OkStatus();
      });
}

}  // namespace txl
