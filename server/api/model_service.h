#pragma once

// txl.v1.ModelService: facts, counters and the tokenizer.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// ApiMethod::handle. The first two answer in every phase of the server.
void GetModel(const ServiceContext& service,
              const std::shared_ptr<ApiCall>& call);
void GetServerStatus(const ServiceContext& service,
                     const std::shared_ptr<ApiCall>& call);
void Tokenize(const ServiceContext& service,
              const std::shared_ptr<ApiCall>& call);
void Detokenize(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call);

}  // namespace txl
