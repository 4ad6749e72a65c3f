#pragma once

// The body of POST /v1/chat/completions -> a turn that may be asked for: the
// messages become one prompt as the model's chat format has it. Pure.

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "server/api/model_facts.h"
#include "server/http/completion_fields.h"
#include "server/http/http_message.h"

namespace txl {

// NO_CHAT_FORMAT where the model has none.
absl::StatusOr<CompletionRequest> ReadChat(const nlohmann::json& body,
                                           const HttpRequest& http,
                                           const ModelFacts& facts);

}  // namespace txl
