#pragma once

// SessionService.ForkSession and RewindSession.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// ApiMethod::handle.
void ForkSession(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call);
void RewindSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call);

}  // namespace txl
