#pragma once

// txl.v1.GenerationService: Generate and Score as turns of the scheduler.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// Methods (methods.h).
void Generate(const TurnContext& service, const std::shared_ptr<ApiCall>& call);
void Score(const TurnContext& service, const std::shared_ptr<ApiCall>& call);

// GenerationService.ScoreAlternatives: one turn of the scheduler for all of
// them.

void ScoreAlternatives(const TurnContext& service,
                       const std::shared_ptr<ApiCall>& call);

}  // namespace txl
