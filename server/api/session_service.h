#pragma once

// txl.v1.SessionService on the session store; AppendTokens is a turn.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// Methods (methods.h).
void CreateSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);
void GetSession(const TurnContext& service,
                const std::shared_ptr<ApiCall>& call);
void ListSessions(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call);
void DeleteSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);
void AppendTokens(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call);

// SessionService.ForkSession and RewindSession.

// Methods (methods.h).
void ForkSession(const TurnContext& service,
                 const std::shared_ptr<ApiCall>& call);
void RewindSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);

}  // namespace txl
