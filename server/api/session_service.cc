#include <algorithm>
#include <utility>
#include <vector>

#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "server/api/services.h"
#include "server/api/session_transfer.h"
#include "server/api/turn_submit.h"
#include "server/api/unary_turn.h"
#include "server/base/error.h"

namespace txl {
namespace {

absl::StatusOr<SessionName> Create(const TurnContext& service, ApiCall& call,
                                   const SessionName& session,
                                   const v1::CreateSessionRequest& request,
                                   v1::CreateSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const std::optional<absl::Duration> ttl,
                       ReadTtl(request));
  TXL_ASSIGN_OR_RETURN(const SessionInfo info,
                       service.sessions->Create(session, ttl));
  const SessionName made = call.Told(info);
  call.record().session = HashOf(made);
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return made;
}

absl::Status Get(const TurnContext& service, ApiCall& call,
                 const SessionName& session, const v1::GetSessionRequest&,
                 v1::GetSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const SessionInfo info, service.sessions->Get(session));
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return absl::OkStatus();
}

absl::Status GetTokens(const TurnContext& service, ApiCall& call,
                       const SessionName& session,
                       const v1::GetSessionRequest& request,
                       v1::GetSessionResponse* response) {
  TXL_ASSIGN_OR_RETURN(const TokenRange range, ReadTokenRange(request));
  const int64_t before = std::min(range.from, kTextContext);
  TXL_ASSIGN_OR_RETURN(const SessionText page,
                       service.sessions->GetTokens(session, range.from - before,
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
  if (service.model.facts->vocabulary != nullptr) {
    response->set_text(
        PageText(*service.model.facts->vocabulary, ids, context, last));
  }
  return absl::OkStatus();
}

struct ReadSession {
  std::shared_ptr<const v1::GetSessionRequest> request;
  SessionName session;
};

absl::StatusOr<ReadSession> ReadGet(ApiCall& call) {
  ReadSession read;
  TXL_ASSIGN_OR_RETURN(read.request, call.Read<v1::GetSessionRequest>());
  TXL_ASSIGN_OR_RETURN(read.session,
                       call.NamedSessionOf(read.request->session_id()));
  TXL_RETURN_IF_ERROR(ReadTokenRange(*read.request).status());
  if (read.request->include_tokens()) {
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
  WriteUsage(finished, response->mutable_usage());
  return response;
}

}  // namespace

void CreateSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  AnswerOnSession(service, call, Create);
}

void GetSession(const TurnContext& service,
                const std::shared_ptr<ApiCall>& call) {
  const absl::StatusOr<ReadSession> read = ReadGet(*call);
  if (!read.ok()) return call->End(read.status());
  const auto answer = [&service, call, read = *read](auto* get) {
    v1::GetSessionResponse response;
    const absl::Status status =
        get(service, *call, read.session, *read.request, &response);
    if (!status.ok()) return call->End(status);
    call->Answer(response);
  };
  const bool tokens = read->request->include_tokens();
  service.sessions.With(read->session,
                        [call, answer, tokens](const absl::Status& status) {
                          if (!status.ok()) return call->End(status);
                          if (!tokens) return answer(Get);
                          call->Work([answer] { answer(GetTokens); });
                        });
}

void ListSessions(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call) {
  const auto request = call->Read<v1::ListSessionsRequest>();
  if (!request.ok()) return call->End(request.status());
  const auto answer = [call](const absl::StatusOr<SessionPage>& page) {
    if (!page.ok()) return call->End(page.status());
    call->Work([call, page = *page] {
      v1::ListSessionsResponse response;
      WritePage(page, &response);
      call->Answer(response);
    });
  };
  call->Work([&service, call, request = *request, answer] {
    service.sessions->ListStored(call->caller().tenant, request->page_size(),
                                 request->page_token(), answer);
  });
}

void DeleteSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  const auto request = call->Read<v1::DeleteSessionRequest>();
  if (!request.ok()) return call->End(request.status());
  const absl::StatusOr<SessionName> session =
      call->NamedSessionOf((*request)->session_id());
  if (!session.ok()) return call->End(session.status());
  service.sessions.End(*session, [&service, call, session = *session](
                                     const absl::StatusOr<bool>& served) {
    if (!served.ok()) return call->End(served.status());
    if (*served) call->ReturnSession(session.id());
    service.sessions.WhenStored(
        AnswerIfStored(call, v1::DeleteSessionResponse()));
  });
}

void AppendTokens(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call) {
  SubmitCall<v1::AppendTokensRequest>(service, call, TurnKind::kAppend,
                                      ReadAppend, AppendAnswer);
}

namespace {

absl::StatusOr<ForkRequest> Read(ApiCall& call) {
  TXL_ASSIGN_OR_RETURN(const auto request, call.Read<v1::ForkSessionRequest>());
  NoteRequest(call, *request);
  TXL_ASSIGN_OR_RETURN(const SessionName session,
                       call.NamedSessionOf(request->session_id()));
  return ReadFork(session, *request);
}

// Forks a session whose state has been saved. Where a turn came in between, its
// end is what the next save is for; where another server made the child in
// between, it may have done so for this very request.
void Fork(const TurnContext& service, const std::shared_ptr<ApiCall>& call,
          const ForkRequest& fork, bool again) {
  const auto forked = [&service, call, fork, again](const absl::Status& saved) {
    if (!saved.ok()) return call->End(saved);
    const absl::StatusOr<SessionInfo> child = service.sessions->Fork(fork);
    const auto look = [&service, call, fork](const absl::Status& found) {
      found.ok() ? Fork(service, call, fork, false) : call->End(found);
    };
    if (!child.ok()) {
      const std::string reason = GetErrorDetails(child.status()).reason;
      if (again && reason == "SESSION_BUSY") return look(absl::OkStatus());
      // Another server may have gone on with it since it was brought.
      if (again && service.sessions->HasLeft(fork.session)) {
        return service.sessions.With(fork.session, look);
      }
      return call->End(child.status());
    }
    v1::ForkSessionResponse response;
    WriteSession(*child, response.mutable_session());
    // A proxy has to learn where the new session is.
    call->ReturnSession(child->session_id);
    const auto answer = AnswerIfStored(call, std::move(response));
    const SessionName made(fork.session.tenant(), child->session_id);
    const bool may_be_made = again && !fork.request_id.empty();
    service.sessions.WhenChanged(
        call->Told(*child), [&service, may_be_made, answer, made,
                             look](const absl::Status& stored) {
          if (!may_be_made ||
              GetErrorDetails(stored).reason != "SESSION_EXISTS") {
            return answer(stored);
          }
          service.sessions.With(made, look);
        });
  };
  SaveState(service, call, fork.session, fork.position, forked);
}

absl::StatusOr<SessionName> Rewind(const TurnContext& service, ApiCall& call,
                                   const SessionName& session,
                                   const v1::RewindSessionRequest& request,
                                   v1::RewindSessionResponse* response) {
  if (session.empty()) return ValidateSessionId("");
  TXL_ASSIGN_OR_RETURN(const RewindRequest rewind,
                       ReadRewind(session, request));
  TXL_ASSIGN_OR_RETURN(const SessionInfo info,
                       service.sessions->Rewind(rewind));
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return session;
}

}  // namespace

void ForkSession(const TurnContext& service,
                 const std::shared_ptr<ApiCall>& call) {
  absl::StatusOr<ForkRequest> fork = Read(*call);
  if (!fork.ok()) return call->End(fork.status());
  // A fork that was made before may be stored.
  if (fork->new_session_id.empty() && !fork->request_id.empty()) {
    fork->new_session_id = IdOfFork(*fork);
  }
  const auto run = [&service, call, fork = *fork](const absl::Status& status) {
    status.ok() ? Fork(service, call, fork, true) : call->End(status);
  };
  service.sessions.With(
      fork->session,
      [&service, run,
       made = SessionName(fork->session.tenant(), fork->new_session_id)](
          const absl::Status& status) {
        status.ok() ? service.sessions.With(made, run) : run(status);
      });
}

void RewindSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  AnswerOnSession(service, call, Rewind);
}

}  // namespace txl
