#pragma once

// What the front answers: paths and their handlers.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/door.h"
#include "server/http/exchange.h"
#include "server/http/http_api.h"

namespace txl {

PathRule RuleOf(const std::string& path);

// Who asks, and may. With keys, everything but open paths and a browser's
// question whether it may ask needs one. Errors: as LetInPath.
absl::StatusOr<Caller> LetInHttp(const HttpApi& api, const HttpRequest& head,
                                 const std::vector<std::string>& authorization);

// Answers a request. `api` outlives it.
void AnswerHttp(const HttpApi& api, const std::shared_ptr<Exchange>& exchange);

}  // namespace txl
