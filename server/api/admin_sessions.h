#pragma once

// txl.v1.AdminService: the sessions of any tenant.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// FIELD_INVALID tenant.
absl::Status CheckTenantField(const std::string& tenant);

// ApiMethod::handle.
void ListTenantSessions(const ServiceContext& service,
                        const std::shared_ptr<ApiCall>& call);
void MoveOutSession(const ServiceContext& service,
                    const std::shared_ptr<ApiCall>& call);
void EndSession(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call);

}  // namespace txl
