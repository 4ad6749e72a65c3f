#pragma once

// The body of POST /v1/completions -> turns that may be asked for. Pure.

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "server/api/model_facts.h"
#include "server/http/completion_fields.h"
#include "server/http/http_message.h"

namespace txl {

absl::StatusOr<CompletionRequest> ReadCompletion(const nlohmann::json& body,
                                                 const HttpRequest& http,
                                                 const ModelFacts& facts);

}  // namespace txl
