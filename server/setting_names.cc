#include "server/setting_names.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace txl {
namespace {

constexpr absl::string_view kForeignNames[] = {
    "TXL_SERVER",        // where txl finds it
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

// Levenshtein's distance.
size_t Changes(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// https://kubernetes.io/docs/concepts/services-networking/service/, environment
// variables.
bool IsServiceLink(absl::string_view name, absl::string_view value) {
  return absl::EndsWith(name, "_SERVICE_HOST") ||
         absl::StrContains(name, "_SERVICE_PORT") ||
         absl::StrContains(name, "_TCP_") || absl::StrContains(name, "_UDP_") ||
         absl::StrContains(value, "://");
}

}  // namespace

std::string NearestName(absl::string_view wanted,
                        const std::vector<std::string>& names) {
  std::string nearest;
  size_t least = wanted.size() / 3 + 1;
  for (const std::string& name : names) {
    const size_t changes = Changes(wanted, name);
    if (changes >= least) continue;
    least = changes;
    nearest = name;
  }
  return nearest;
}

std::string NoSuchSetting(absl::string_view wanted,
                          const std::vector<std::string>& names) {
  const std::string nearest = NearestName(wanted, names);
  return absl::StrCat(
      wanted, ": no such setting",
      nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?"));
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
