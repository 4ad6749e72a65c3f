#pragma once

// txl.v1.GenerationService: Generate and Score as turns of the scheduler.

#include <memory>

#include "server/rpc/open_call.h"
#include "server/rpc/service_context.h"

namespace txl {

// ApiMethod::handle.
void Generate(const ServiceContext& service,
              const std::shared_ptr<OpenCall>& call);
void Score(const ServiceContext& service,
           const std::shared_ptr<OpenCall>& call);

}  // namespace txl
