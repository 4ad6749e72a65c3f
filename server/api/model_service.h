#pragma once

// txl.v1.ModelService: facts, counters and the tokenizer.

#include <cstdint>
#include <memory>

#include "model/config/generation_defaults.h"
#include "model/config/model_config.h"
#include "model/text/vocabulary.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// Methods (methods.h). The first two answer in every phase of the server.
void GetModel(const ServedModel& model, const std::shared_ptr<ApiCall>& call);
void GetServerStatus(const std::shared_ptr<ApiCall>& call);
void Tokenize(const ServedModel& model, const std::shared_ptr<ApiCall>& call);
void Detokenize(const ServedModel& model, const std::shared_ptr<ApiCall>& call);

}  // namespace txl
