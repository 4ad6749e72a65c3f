#include "server/listen_address.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace txl {
namespace {

constexpr char kOff[] = "off";

}  // namespace

std::string CheckListen(const std::string& listen) {
  if (absl::StartsWith(listen, "unix:")) {
    return listen.size() > 5 ? "" : "unix: needs a path";
  }
  const size_t colon = listen.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::StrCat("\"", listen, "\" is neither HOST:PORT nor unix:PATH");
  }
  return "";
}

std::string CheckAdminListen(const std::string& listen) {
  if (listen.empty() || listen == kOff || listen == kAdminAuto) return "";
  return CheckListen(listen);
}

std::string AdminAddress(const std::string& listen,
                         const std::string& data_dir) {
  if (listen == kOff) return "";
  if (listen != kAdminAuto) return listen;
  return data_dir.empty() ? "" : absl::StrCat("unix:", data_dir, "/admin.sock");
}

}  // namespace txl
