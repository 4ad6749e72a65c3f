#pragma once

// /v1/sessions and what lies below it.

#include <memory>

#include "server/http/exchange.h"
#include "server/http/http_api.h"

namespace txl {

// False: the path is none of them.
bool AnswerSessionPath(const HttpApi& api,
                       const std::shared_ptr<Exchange>& exchange);

}  // namespace txl
