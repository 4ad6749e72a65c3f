#pragma once

// SessionService.ForkSession and RewindSession.

#include <memory>

#include "server/rpc/open_call.h"
#include "server/rpc/service_context.h"

namespace txl {

// ApiMethod::handle.
void ForkSession(const ServiceContext& service,
                 const std::shared_ptr<OpenCall>& call);
void RewindSession(const ServiceContext& service,
                   const std::shared_ptr<OpenCall>& call);

}  // namespace txl
