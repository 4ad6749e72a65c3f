#pragma once

// /v1/sessions and what lies below it.

#include <memory>
#include <optional>
#include <string>

#include "server/http/http_api.h"
#include "server/http/http_message.h"

namespace txl {

// Whether the path is one of them, or would be if there were such a session or
// action.
bool IsSessionPath(const std::string& path);

// False: the path is not one of them.
bool AnswerSessionPath(const HttpApi& api,
                       const std::shared_ptr<Exchange>& exchange);

}  // namespace txl
