#include "server/setting_names.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "program/nearest_name.h"

namespace txl {
namespace {

constexpr absl::string_view kForeignNames[] = {
    "TXL_SERVER",        // where txl finds it
    "TXL_KEY_FILE",      // its key
    "TXL_ADMIN",         // its administration
    "TXL_CERTIFICATES",  // compose.yaml
    "TXL_PUBLIC_PORT",
    "TXL_JOBS",  // building
};
constexpr absl::string_view kForeignPrefixes[] = {
    "TXL_PROXY_",                               // HAProxy's configuration
    "TXL_TEST_",   "TXL_CUT_",    "TXL_SOAK_",  // tests
    "TXL_FUZZ_",   "TXL_ATTACK_", "TXL_BENCH_",
    "TXL_DEVICE_", "TXL_IMAGE_",  // scripts
};

bool IsProtocol(absl::string_view text) {
  return text == "tcp" || text == "udp" || text == "sctp";
}

// "PORT_8080_TCP" at the end of the name, or before _ADDR, _PROTO, _PORT,
// _PORT_START and the like.
bool IsLinkOfPort(absl::string_view name) {
  constexpr absl::string_view kEnds[] = {"addr", "port", "proto", "start",
                                         "end"};
  std::vector<std::string> words =
      absl::StrSplit(absl::AsciiStrToLower(name), '_');
  for (int i = 0; i < 2; ++i) {
    if (absl::c_linear_search(kEnds, words.back())) words.pop_back();
    if (words.empty()) return false;
  }
  int port = 0;
  const size_t count = words.size();
  return count > 3 && IsProtocol(words[count - 1]) &&
         absl::SimpleAtoi(words[count - 2], &port) &&
         words[count - 3] == "port";
}

// Environment variables that Docker sets for a linked container, and Kubernetes
// for a service, whose name begins with txl:
// https://docs.docker.com/engine/network/links/
// https://kubernetes.io/docs/concepts/services-networking/service/
bool IsServiceLink(absl::string_view name, absl::string_view value) {
  const std::pair<absl::string_view, absl::string_view> address =
      absl::StrSplit(value, absl::MaxSplits("://", 1));
  return absl::EndsWith(name, "_SERVICE_HOST") ||
         absl::StrContains(name, "_SERVICE_PORT") || IsLinkOfPort(name) ||
         (absl::EndsWith(name, "_PORT") && !address.second.empty() &&
          IsProtocol(address.first)) ||
         (absl::EndsWith(name, "_NAME") && absl::StartsWith(value, "/")) ||
         absl::StrContains(name, "_ENV_");
}

}  // namespace

std::string NoSuchSetting(absl::string_view wanted,
                          const std::vector<std::string>& names) {
  return absl::StrCat(wanted, ": no such setting", DidYouMean(wanted, names));
}

bool IsForeignVariable(absl::string_view name, absl::string_view value) {
  return std::find(std::begin(kForeignNames), std::end(kForeignNames), name) !=
             std::end(kForeignNames) ||
         std::any_of(std::begin(kForeignPrefixes), std::end(kForeignPrefixes),
                     [name](absl::string_view prefix) {
                       return absl::StartsWith(name, prefix);
                     }) ||
         IsServiceLink(name, value);
}

}  // namespace txl
