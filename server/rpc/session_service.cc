#include "server/rpc/session_service.h"

#include <algorithm>
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

absl::Status Create(const ServiceContext& service, OpenCall& call,
                    const v1::CreateSessionRequest& request,
                    v1::CreateSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const std::optional<absl::Duration> ttl,
                       ReadTtl(request));
  TXL_RETURN_IF_ERROR(CheckMetadata(call.context(), request.session_id()));
  TXL_ASSIGN_OR_RETURN(const SessionInfo info,
                       service.store->Create(request.session_id(), ttl));
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return absl::OkStatus();
}

absl::Status Get(const ServiceContext& service, OpenCall& call,
                 const v1::GetSessionRequest& request,
                 v1::GetSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const SessionInfo info,
                       service.store->Get(request.session_id()));
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return absl::OkStatus();
}

absl::Status GetTokens(const ServiceContext& service, OpenCall& call,
                       const v1::GetSessionRequest& request,
                       v1::GetSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const TokenRange range, ReadTokenRange(request));
  const int64_t before = std::min(range.from, kTextContext);
  TXL_ASSIGN_OR_RETURN(
      const SessionText page,
      service.store->GetTokens(request.session_id(), range.from - before,
                               before + range.count));
  call.ReturnSession(page.info.session_id);
  WriteSession(page.info, response->mutable_session());
  const absl::Span<const int32_t> ids = page.token_ids;
  const size_t context = std::min<size_t>(before, ids.size());
  const int64_t end = range.from - before + static_cast<int64_t>(ids.size());
  const bool last = end >= page.info.position;
  const auto wanted = ids.subspan(context);
  response->mutable_token_ids()->Add(wanted.begin(), wanted.end());
  response->set_start_position(range.from);
  if (!last) response->set_next_page_token(TokenPageToken(end));
  if (service.facts->vocabulary != nullptr) {
    response->set_text(
        PageText(*service.facts->vocabulary, ids, context, last));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::GetSessionRequest> ReadGet(OpenCall& call) {
  v1::GetSessionRequest request;
  TXL_RETURN_IF_ERROR(ParseMessage(call.request(), &request));
  TXL_RETURN_IF_ERROR(ValidateSessionId(request.session_id()));
  TXL_RETURN_IF_ERROR(CheckMetadata(call.context(), request.session_id()));
  if (request.include_tokens()) TXL_RETURN_IF_ERROR(call.desk().CheckMemory());
  return request;
}

absl::Status ListPage(const ServiceContext& service,
                      const v1::ListSessionsRequest& request,
                      v1::ListSessionsResponse* response) {
  TXL_ASSIGN_OR_RETURN(
      const SessionPage page,
      service.store->List(request.page_size(), request.page_token()));
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

void CreateSession(const ServiceContext& service,
                   const std::shared_ptr<OpenCall>& call) {
  AnswerCall<v1::CreateSessionRequest, v1::CreateSessionResponse>(
      *call, [&](const auto& in, auto* out) {
        return Create(service, *call, in, out);
      });
}

void GetSession(const ServiceContext& service,
                const std::shared_ptr<OpenCall>& call) {
  const absl::StatusOr<v1::GetSessionRequest> request = ReadGet(*call);
  if (!request.ok()) return call->End(request.status());
  const auto answer = [&service, call, request = *request](auto* get) {
    v1::GetSessionResponse response;
    const absl::Status status = get(service, *call, request, &response);
    if (!status.ok()) return call->End(status);
    call->Answer(SerializeMessage(response));
  };
  if (!request->include_tokens()) return answer(Get);
  call->Work([answer] { answer(GetTokens); });
}

void ListSessions(const ServiceContext& service,
                  const std::shared_ptr<OpenCall>& call) {
  call->Work([&service, call] {
    AnswerCall<v1::ListSessionsRequest, v1::ListSessionsResponse>(
        *call,
        [&](const auto& in, auto* out) { return ListPage(service, in, out); });
  });
}

void DeleteSession(const ServiceContext& service,
                   const std::shared_ptr<OpenCall>& call) {
  AnswerCall<v1::DeleteSessionRequest, v1::DeleteSessionResponse>(
      *call, [&](const auto& in, auto*) -> absl::Status {
        TXL_RETURN_IF_ERROR(ValidateSessionId(in.session_id()));
        TXL_RETURN_IF_ERROR(CheckMetadata(call->context(), in.session_id()));
        TXL_RETURN_IF_ERROR(service.store->Delete(in.session_id()));
        call->ReturnSession(in.session_id());
        service.scheduler->Wake();
        return absl::OkStatus();
      });
}

void AppendTokens(const ServiceContext& service,
                  const std::shared_ptr<OpenCall>& call) {
  SubmitCall<v1::AppendTokensRequest>(service, call, TurnKind::kAppend,
                                      ReadAppend, AppendAnswer);
}

}  // namespace txl
