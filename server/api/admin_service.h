#pragma once

// txl.v1.AdminService: the server, its tenants and the sessions of
// any tenant. REQUIRES: the context has an Administration.

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"
#include "server/scheduler/scheduler_report.h"

namespace txl {

// Methods (methods.h).
void DrainTenant(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call);
void DrainServer(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call);
void GetQuotas(const ServiceContext& service,
               const std::shared_ptr<ApiCall>& call);
void Reload(const ServiceContext& service,
            const std::shared_ptr<ApiCall>& call);
void ChangeLogLevel(const std::shared_ptr<ApiCall>& call);
void Dump(const ServiceContext& service, const std::shared_ptr<ApiCall>& call);

// AdminService's Dump: the server's state as JSON, for a report of a bug.

// An object with "model", "status", "scheduler" and "store" (the proto has what
// they are). Nothing of it is text of a session, a token id or the name of a
// session or a tenant: instead of a name there are 16 hex digits of its
// SHA-256, for a session those of HashOf. `scheduler`: nothing where it did not
// answer, which is said.
std::string DumpJson(const ServiceContext& service,
                     const std::optional<SchedulerReport>& scheduler);

// txl.v1.AdminService: the sessions of any tenant.

// FIELD_INVALID tenant.
absl::Status CheckTenantField(const std::string& tenant);

// Methods (methods.h).
void ListTenantSessions(const ServiceContext& service,
                        const std::shared_ptr<ApiCall>& call);
void MoveOutSession(const ServiceContext& service,
                    const std::shared_ptr<ApiCall>& call);
void EndSession(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call);

}  // namespace txl
