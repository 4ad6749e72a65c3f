#include "server/api/session_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "server/api/turn_submit.h"
#include "server/api/unary_call.h"
#include "server/base/error.h"

namespace txl {
namespace {

absl::StatusOr<SessionName> Create(const ServiceContext& service, ApiCall& call,
                                   const SessionName& session,
                                   const v1::CreateSessionRequest& request,
                                   v1::CreateSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const std::optional<absl::Duration> ttl,
                       ReadTtl(request));
  TXL_ASSIGN_OR_RETURN(const SessionInfo info,
                       service.store->Create(session, ttl));
  const SessionName made = call.Told(info);
  call.record().session = HashOf(made);
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return made;
}

absl::Status Get(const ServiceContext& service, ApiCall& call,
                 const SessionName& session, const v1::GetSessionRequest&,
                 v1::GetSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const SessionInfo info, service.store->Get(session));
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return absl::OkStatus();
}

absl::Status GetTokens(const ServiceContext& service, ApiCall& call,
                       const SessionName& session,
                       const v1::GetSessionRequest& request,
                       v1::GetSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const TokenRange range, ReadTokenRange(request));
  const int64_t before = std::min(range.from, kTextContext);
  TXL_ASSIGN_OR_RETURN(const SessionText page,
                       service.store->GetTokens(session, range.from - before,
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

struct ReadSession {
  v1::GetSessionRequest request;
  SessionName session;
};

absl::StatusOr<ReadSession> ReadGet(ApiCall& call) {
  ReadSession read;
  TXL_RETURN_IF_ERROR(call.Parse(&read.request));
  TXL_ASSIGN_OR_RETURN(read.session,
                       call.NamedSessionOf(read.request.session_id()));
  TXL_RETURN_IF_ERROR(ReadTokenRange(read.request).status());
  if (read.request.include_tokens()) {
    TXL_RETURN_IF_ERROR(call.desk().CheckMemory());
  }
  return read;
}

void WritePage(const SessionPage& page, v1::ListSessionsResponse* response) {
  for (const SessionInfo& info : page.sessions) {
    WriteSession(info, response->add_sessions());
  }
  response->set_next_page_token(page.next_page_token);
}

AnswerMessage AppendAnswer(const TurnFinished& finished,
                           const std::vector<ScoredToken>& scored) {
  auto response = std::make_unique<v1::AppendTokensResponse>();
  response->set_position(finished.position);
  response->set_sum_logprob(WriteScored(scored, response->mutable_scored()));
  return response;
}

}  // namespace

void CreateSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  AnswerOnSession(service, call, Create);
}

void GetSession(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call) {
  const absl::StatusOr<ReadSession> read = ReadGet(*call);
  if (!read.ok()) return call->End(read.status());
  const auto answer = [&service, call, read = *read](auto* get) {
    v1::GetSessionResponse response;
    const absl::Status status =
        get(service, *call, read.session, read.request, &response);
    if (!status.ok()) return call->End(status);
    call->Answer(response);
  };
  const bool tokens = read->request.include_tokens();
  WithSession(service, read->session,
              [call, answer, tokens](const absl::Status& status) {
                if (!status.ok()) return call->End(status);
                if (!tokens) return answer(Get);
                call->Work([answer] { answer(GetTokens); });
              });
}

void ListSessions(const ServiceContext& service,
                  const std::shared_ptr<ApiCall>& call) {
  v1::ListSessionsRequest request;
  const absl::Status status = call->Parse(&request);
  if (!status.ok()) return call->End(status);
  const auto answer = [call](const absl::StatusOr<SessionPage>& page) {
    if (!page.ok()) return call->End(page.status());
    call->Work([call, page = *page] {
      v1::ListSessionsResponse response;
      WritePage(page, &response);
      call->Answer(response);
    });
  };
  call->Work([&service, call, request, answer] {
    service.store->ListStored(call->caller().tenant, request.page_size(),
                              request.page_token(), answer);
  });
}

void DeleteSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  v1::DeleteSessionRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->End(parsed);
  const absl::StatusOr<SessionName> session =
      call->NamedSessionOf(request.session_id());
  if (!session.ok()) return call->End(session.status());
  EndNamed(
      service, *session,
      [&service, call, session = *session](const absl::StatusOr<bool>& served) {
        if (!served.ok()) return call->End(served.status());
        if (*served) call->ReturnSession(session.id());
        AnswerStored(service, call, session, v1::DeleteSessionResponse(),
                     WhenStored);
      });
}

void AppendTokens(const ServiceContext& service,
                  const std::shared_ptr<ApiCall>& call) {
  SubmitCall<v1::AppendTokensRequest>(service, call, TurnKind::kAppend,
                                      ReadAppend, AppendAnswer);
}

}  // namespace txl
