#include "server/api/admin_sessions.h"

#include "model/base/status_macros.h"
#include "server/api/convert_output.h"
#include "server/api/convert_sessions.h"
#include "server/api/save_state.h"
#include "server/api/unary_call.h"
#include "server/base/error.h"
#include "txl/v1/admin_service.pb.h"

namespace txl {
namespace {

absl::StatusOr<std::string> ReadTenant(const std::string& field) {
  if (field.empty()) return kDefaultTenant;
  TXL_RETURN_IF_ERROR(CheckTenantField(field));
  return field;
}

// The session that a request names: administrators name others'.
template <typename Request>
absl::StatusOr<SessionName> ReadName(ApiCall& call) {
  Request request;
  TXL_RETURN_IF_ERROR(call.Parse(&request));
  TXL_ASSIGN_OR_RETURN(const std::string tenant, ReadTenant(request.tenant()));
  TXL_RETURN_IF_ERROR(CheckIdField("session_id", request.session_id()));
  const SessionName session(tenant, request.session_id());
  call.record().session = HashOf(session);
  return session;
}

v1::ListTenantSessionsResponse PageAnswer(const SessionPage& page) {
  v1::ListTenantSessionsResponse response;
  for (const SessionInfo& info : page.sessions) {
    v1::TenantSession* const session = response.add_sessions();
    WriteSession(info, session->mutable_session());
    session->set_in_slot(info.in_slot);
  }
  response.set_next_page_token(page.next_page_token);
  return response;
}

}  // namespace

absl::Status CheckTenantField(const std::string& tenant) {
  return CheckIdField("tenant", tenant);  // tenants are named like sessions
}

void ListTenantSessions(const ServiceContext& service,
                        const std::shared_ptr<ApiCall>& call) {
  v1::ListTenantSessionsRequest request;
  const absl::Status status = call->Parse(&request);
  if (!status.ok()) return call->End(status);
  const absl::StatusOr<std::string> tenant = ReadTenant(request.tenant());
  if (!tenant.ok()) return call->End(tenant.status());
  service.store->ListStored(*tenant, request.page_size(), request.page_token(),
                            [call](const absl::StatusOr<SessionPage>& page) {
                              if (!page.ok()) return call->End(page.status());
                              call->Answer(PageAnswer(*page));
                            });
}

void MoveOutSession(const ServiceContext& service,
                    const std::shared_ptr<ApiCall>& call) {
  const auto name = ReadName<v1::MoveOutSessionRequest>(*call);
  if (!name.ok()) return call->End(name.status());
  const auto answer = [call](const absl::StatusOr<bool>& moved) {
    if (!moved.ok()) return call->End(moved.status());
    v1::MoveOutSessionResponse response;
    response.set_moved(*moved);
    call->Answer(response);
  };
  WithSession(
      service, *name,
      [&service, call, name = *name, answer](const absl::Status& status) {
        if (!status.ok()) return call->End(status);
        MoveOutState(service, call, name, answer);
      });
}

void EndSession(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call) {
  const auto name = ReadName<v1::EndSessionRequest>(*call);
  if (!name.ok()) return call->End(name.status());
  EndNamed(service, *name,
           [&service, call, name = *name](const absl::StatusOr<bool>& served) {
             if (!served.ok()) return call->End(served.status());
             AnswerStored(service, call, name, v1::EndSessionResponse(),
                          WhenStored);
           });
}

}  // namespace txl
