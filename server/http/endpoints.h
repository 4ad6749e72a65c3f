#pragma once

// What the front answers: paths and their handlers.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/guard.h"
#include "server/http/http_api.h"
#include "server/http/http_message.h"

namespace txl {

PathRule RuleOf(const std::string& path);

// Whether who asks may: LetInPath by the path's rule. A browser's question
// whether it may ask needs no key.
absl::Status LetInHttp(const HttpApi& api,
                       const std::vector<std::string>& authorization,
                       HttpRequest* head);

// Answers a request. `api` outlives it.
void AnswerHttp(const HttpApi& api, const std::shared_ptr<Exchange>& exchange);

}  // namespace txl
