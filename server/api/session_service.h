#pragma once

// txl.v1.SessionService on the session store; AppendTokens is a turn.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// ApiMethod::handle.
void CreateSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call);
void GetSession(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call);
void ListSessions(const ServiceContext& service,
                  const std::shared_ptr<ApiCall>& call);
void DeleteSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call);
void AppendTokens(const ServiceContext& service,
                  const std::shared_ptr<ApiCall>& call);

}  // namespace txl
