#pragma once

// GenerationService.ScoreAlternatives: one turn of the scheduler for all of
// them.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

void ScoreAlternatives(const ServiceContext& service,
                       const std::shared_ptr<ApiCall>& call);

}  // namespace txl
