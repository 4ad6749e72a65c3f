#pragma once

// txl.v1.SessionService on the session store; AppendTokens is a turn.

#include <memory>

#include "server/rpc/open_call.h"
#include "server/rpc/service_context.h"

namespace txl {

// ApiMethod::handle.
void CreateSession(const ServiceContext& service,
                   const std::shared_ptr<OpenCall>& call);
void GetSession(const ServiceContext& service,
                const std::shared_ptr<OpenCall>& call);
void ListSessions(const ServiceContext& service,
                  const std::shared_ptr<OpenCall>& call);
void DeleteSession(const ServiceContext& service,
                   const std::shared_ptr<OpenCall>& call);
void AppendTokens(const ServiceContext& service,
                  const std::shared_ptr<OpenCall>& call);

}  // namespace txl
