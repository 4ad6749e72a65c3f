#include "server/api/session_branches.h"

#include <utility>

#include "model/base/status_macros.h"
#include "server/api/convert_output.h"
#include "server/api/convert_sessions.h"
#include "server/api/save_state.h"
#include "server/api/unary_call.h"
#include "server/base/error.h"

namespace txl {
namespace {

absl::StatusOr<ForkRequest> Read(ApiCall& call) {
  v1::ForkSessionRequest request;
  TXL_RETURN_IF_ERROR(call.Parse(&request));
  NoteRequest(call, request);
  TXL_ASSIGN_OR_RETURN(const SessionName session,
                       call.NamedSessionOf(request.session_id()));
  return ReadFork(session, request);
}

// Forks a session whose state has been saved. Where a turn came in between, its
// end is what the next save is for.
void Fork(const ServiceContext& service, const std::shared_ptr<ApiCall>& call,
          const ForkRequest& fork, bool again) {
  const auto forked = [&service, call, fork, again](const absl::Status& saved) {
    if (!saved.ok()) return call->End(saved);
    const absl::StatusOr<SessionInfo> child = service.store->Fork(fork);
    if (!child.ok()) {
      if (again && GetErrorDetails(child.status()).reason == "SESSION_BUSY") {
        return Fork(service, call, fork, false);
      }
      return call->End(child.status());
    }
    v1::ForkSessionResponse response;
    WriteSession(*child, response.mutable_session());
    // A proxy has to learn where the new session is.
    call->ReturnSession(child->session_id);
    AnswerStored(service, call, call->Told(*child), std::move(response));
  };
  SaveState(service, call, fork.session, fork.position, forked);
}

absl::StatusOr<SessionName> Rewind(const ServiceContext& service, ApiCall& call,
                                   const SessionName& session,
                                   const v1::RewindSessionRequest& request,
                                   v1::RewindSessionResponse* response) {
  if (session.empty()) return ValidateSessionId("");
  TXL_ASSIGN_OR_RETURN(const RewindRequest rewind,
                       ReadRewind(session, request));
  TXL_ASSIGN_OR_RETURN(const SessionInfo info, service.store->Rewind(rewind));
  call.ReturnSession(info.session_id);
  WriteSession(info, response->mutable_session());
  return session;
}

}  // namespace

void ForkSession(const ServiceContext& service,
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
  WithSession(
      service, fork->session,
      [&service, run,
       made = SessionName(fork->session.tenant(), fork->new_session_id)](
          const absl::Status& status) {
        status.ok() ? WithSession(service, made, run) : run(status);
      });
}

void RewindSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  AnswerOnSession(service, call, Rewind);
}

}  // namespace txl
