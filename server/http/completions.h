#pragma once

// POST /v1/completions and /v1/chat/completions: the turns of their choices,
// and their answer as a whole or as a stream of server-sent events.

#include <memory>

#include "server/http/exchange.h"
#include "server/http/http_api.h"

namespace txl {

// `api` outlives the request.
void Complete(const HttpApi& api, std::shared_ptr<Exchange> exchange);
void Chat(const HttpApi& api, std::shared_ptr<Exchange> exchange);

}  // namespace txl
