#pragma once

// What the front answers: paths and their handlers.

#include <memory>

#include "server/http/exchange.h"
#include "server/http/http_api.h"

namespace txl {

// Answers a request. `api` outlives it.
void AnswerHttp(const HttpApi& api, const std::shared_ptr<Exchange>& exchange);

}  // namespace txl
