#pragma once

// POST /v1/completions: the turns of its choices, and their answer as a whole
// or as a stream of server-sent events.

#include <memory>

#include "server/http/exchange.h"
#include "server/http/http_api.h"

namespace txl {

// `api` outlives the request.
void Complete(const HttpApi& api, std::shared_ptr<Exchange> exchange);

}  // namespace txl
