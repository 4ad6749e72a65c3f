#pragma once

// What AdminService asks of the server as a whole, which the composition root
// knows.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/metrics/server_status.h"

namespace txl {

// A file that was read again.
struct ReloadedFile {
  std::string setting;  // the flag's name, "keys"
  std::string path;
  absl::Status status;  // an error: what was read before stays in force
};

// Every function is thread-safe.
struct Administration {
  std::function<std::vector<ReloadedFile>()> reload;
  // Has the server drain, as SIGTERM does; returns at once. False: it serves
  // nothing yet.
  std::function<bool()> drain;
  std::function<ServerStatus()> status;
};

}  // namespace txl
