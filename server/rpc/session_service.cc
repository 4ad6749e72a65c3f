#include "server/rpc/session_service.h"

#include <utility>
#include <vector>

#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/rpc/call_context.h"
#include "server/rpc/convert_input.h"
#include "server/rpc/convert_output.h"
#include "server/rpc/raw_message.h"
#include "server/rpc/turn_submit.h"
#include "server/rpc/unary_call.h"

namespace txl {
namespace {

absl::Status Create(const ServiceContext& service,
                    grpc::CallbackServerContext* call,
                    const v1::CreateSessionRequest& request,
                    v1::CreateSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const std::optional<absl::Duration> ttl,
                       ReadTtl(request));
  TXL_RETURN_IF_ERROR(ExchangeSessionMetadata(call, request.session_id()));
  TXL_ASSIGN_OR_RETURN(const SessionInfo info,
                       service.store->Create(request.session_id(), ttl));
  if (request.session_id().empty()) {
    call->AddInitialMetadata(kSessionMetadata, info.session_id);
  }
  WriteSession(info, response->mutable_session());
  return absl::OkStatus();
}

absl::Status Get(const ServiceContext& service,
                 grpc::CallbackServerContext* call,
                 const v1::GetSessionRequest& request,
                 v1::GetSessionResponse* response) {
  TXL_RETURN_IF_ERROR(ValidateSessionId(request.session_id()));
  TXL_RETURN_IF_ERROR(ExchangeSessionMetadata(call, request.session_id()));
  if (!request.include_tokens()) {
    TXL_ASSIGN_OR_RETURN(const SessionInfo info,
                         service.store->Get(request.session_id()));
    WriteSession(info, response->mutable_session());
    return absl::OkStatus();
  }
  TXL_ASSIGN_OR_RETURN(const SessionText text,
                       service.store->GetWithTokens(request.session_id()));
  WriteSession(text.info, response->mutable_session());
  response->mutable_token_ids()->Add(text.token_ids.begin(),
                                     text.token_ids.end());
  if (service.facts->vocabulary != nullptr) {
    response->set_text(service.facts->vocabulary->Decode(text.token_ids));
  }
  return absl::OkStatus();
}

absl::Status ListPage(const ServiceContext& service,
                      const v1::ListSessionsRequest& request,
                      v1::ListSessionsResponse* response) {
  TXL_ASSIGN_OR_RETURN(const int page_size, ReadPageSize(request));
  TXL_ASSIGN_OR_RETURN(const SessionPage page,
                       service.store->List(page_size, request.page_token()));
  for (const SessionInfo& info : page.sessions) {
    WriteSession(info, response->add_sessions());
  }
  response->set_next_page_token(page.next_page_token);
  return absl::OkStatus();
}

grpc::ByteBuffer AppendAnswer(const TurnFinished& finished,
                              const std::vector<ScoredToken>& scored) {
  v1::AppendTokensResponse response;
  response.set_position(finished.position);
  response.set_sum_logprob(WriteScored(scored, response.mutable_scored()));
  return SerializeMessage(response);
}

}  // namespace

grpc::ServerUnaryReactor* SessionService::CreateSession(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::CreateSessionRequest, v1::CreateSessionResponse>(
      context_, "txl.v1.SessionService/CreateSession", call, request, response,
      [&](const auto& in, auto* out) {
        return Create(context_, call, in, out);
      });
}

grpc::ServerUnaryReactor* SessionService::GetSession(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::GetSessionRequest, v1::GetSessionResponse>(
      context_, "txl.v1.SessionService/GetSession", call, request, response,
      [&](const auto& in, auto* out) { return Get(context_, call, in, out); });
}

grpc::ServerUnaryReactor* SessionService::ListSessions(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::ListSessionsRequest, v1::ListSessionsResponse>(
      context_, "txl.v1.SessionService/ListSessions", call, request, response,
      [&](const auto& in, auto* out) { return ListPage(context_, in, out); });
}

grpc::ServerUnaryReactor* SessionService::DeleteSession(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return AnswerUnary<v1::DeleteSessionRequest, v1::DeleteSessionResponse>(
      context_, "txl.v1.SessionService/DeleteSession", call, request, response,
      [&](const auto& in, auto*) -> absl::Status {
        TXL_RETURN_IF_ERROR(ValidateSessionId(in.session_id()));
        TXL_RETURN_IF_ERROR(ExchangeSessionMetadata(call, in.session_id()));
        TXL_RETURN_IF_ERROR(context_.store->Delete(in.session_id()));
        context_.scheduler->Wake();
        return absl::OkStatus();
      });
}

absl::StatusOr<grpc::ServerUnaryReactor*> SessionService::Append(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer& request,
    grpc::ByteBuffer* response, CallRecord* record) {
  TXL_RETURN_IF_ERROR(context_.lifecycle->CheckServing());
  v1::AppendTokensRequest message;
  TXL_RETURN_IF_ERROR(ParseMessage(request, &message));
  TXL_ASSIGN_OR_RETURN(FeedParams params,
                       ReadAppend(message, *context_.facts, context_.limits));
  TXL_RETURN_IF_ERROR(ExchangeSessionMetadata(call, params.session_id));
  record->named_session = true;
  record->prompt_tokens = static_cast<int64_t>(params.input.size());
  UnaryTurnOptions options;
  options.answer = AppendAnswer;
  options.deadline = CallDeadline(*call, context_.clock);
  options.wake = [scheduler = context_.scheduler] { scheduler->Wake(); };
  options.callbacks = context_.callbacks;
  options.record = *record;
  return SubmitFeed(context_, TurnKind::kAppend, std::move(params),
                    UnaryTurn::Create(response, std::move(options)));
}

grpc::ServerUnaryReactor* SessionService::AppendTokens(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  CallRecord record = StartRecord("txl.v1.SessionService/AppendTokens",
                                  context_.clock, context_.metrics);
  absl::StatusOr<grpc::ServerUnaryReactor*> reactor =
      Append(call, *request, response, &record);
  return reactor.ok() ? *reactor : FinishNow(call, record, reactor.status());
}

}  // namespace txl
