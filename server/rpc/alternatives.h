#pragma once

// GenerationService.ScoreAlternatives: one turn of the scheduler for all of
// them.

#include <memory>

#include "server/rpc/open_call.h"
#include "server/rpc/service_context.h"

namespace txl {

void ScoreAlternatives(const ServiceContext& service,
                       const std::shared_ptr<OpenCall>& call);

}  // namespace txl
