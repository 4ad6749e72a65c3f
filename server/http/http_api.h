#pragma once

// What every path of the front works with.

#include <functional>
#include <string>

#include "server/api/call_desk.h"
#include "server/http/http_options.h"

namespace txl {

struct HttpApi {
  CallDesk* desk = nullptr;
  // The text of GET /metrics.
  std::function<std::string()> metrics;
  HttpOptions options;
};

}  // namespace txl
