#pragma once

// txl.v1.AdminService: the server and its tenants. What concerns sessions is in
// admin_sessions.h. REQUIRES: the context has an Administration.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// ApiMethod::handle.
void DrainTenant(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call);
void DrainServer(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call);
void GetQuotas(const ServiceContext& service,
               const std::shared_ptr<ApiCall>& call);
void Reload(const ServiceContext& service,
            const std::shared_ptr<ApiCall>& call);
void ChangeLogLevel(const ServiceContext& service,
                    const std::shared_ptr<ApiCall>& call);
void Dump(const ServiceContext& service, const std::shared_ptr<ApiCall>& call);

}  // namespace txl
