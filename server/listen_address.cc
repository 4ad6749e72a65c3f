#include "server/listen_address.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/metrics_endpoint.h"

namespace txl {
namespace {

constexpr char kOff[] = "off";

bool IsWord(const std::string& listen, const char* word) {
  return absl::EqualsIgnoreCase(listen, word);
}

}  // namespace

std::string CheckListen(const std::string& listen) {
  if (absl::StartsWith(listen, "unix:")) {
    return listen.size() > 5 ? "" : "unix: needs a path";
  }
  if (!CheckHttpAddress(listen).empty()) {
    return absl::StrCat("\"", listen, "\" is neither HOST:PORT nor unix:PATH");
  }
  return "";
}

std::string CheckAdminListen(const std::string& listen) {
  if (listen.empty() || IsWord(listen, kOff) || IsWord(listen, kAdminAuto)) {
    return "";
  }
  return CheckListen(listen);
}

std::string AdminAddress(const std::string& listen,
                         const std::string& data_dir) {
  if (IsWord(listen, kOff)) return "";
  if (!IsWord(listen, kAdminAuto)) return listen;
  return data_dir.empty() ? "" : absl::StrCat("unix:", data_dir, "/admin.sock");
}

}  // namespace txl
