#pragma once

// What every path of the front works with.

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/api/call_desk.h"

namespace txl {

struct HttpApi {
  CallDesk* desk = nullptr;
  // The text of GET /metrics.
  std::function<std::string()> metrics;
  absl::Duration ping = absl::ZeroDuration();  // HttpOptions::ping
  std::vector<std::string> origins;            // HttpOptions::origins
};

}  // namespace txl
