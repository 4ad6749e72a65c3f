#pragma once

// txl.v1.GenerationService: Generate and Score as turns of the scheduler.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// ApiMethod::handle.
void Generate(const ServiceContext& service,
              const std::shared_ptr<ApiCall>& call);
void Score(const ServiceContext& service, const std::shared_ptr<ApiCall>& call);

}  // namespace txl
