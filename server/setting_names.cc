#include "server/setting_names.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

// https://kubernetes.io/docs/concepts/services-networking/service/, environment
// variables.
bool IsServiceLink(absl::string_view name, absl::string_view value) {
  return absl::EndsWith(name, "_SERVICE_HOST") ||
         absl::StrContains(name, "_SERVICE_PORT") ||
         absl::StrContains(name, "_TCP_") || absl::StrContains(name, "_UDP_") ||
         absl::StrContains(value, "://");
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
