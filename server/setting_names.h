#pragma once

// Names of settings that somebody misspelt, and variables that are no settings.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

// "WANTED: no such setting", with the nearest name as a question.
std::string NoSuchSetting(absl::string_view wanted,
                          const std::vector<std::string>& names);

// Whether a variable TXL_... is for something else than this program: others of
// the project (TXL_SERVER is txl's; TXL_PROXY_, TXL_TEST_ and the like are the
// deployments', the scripts' and the tests'), or one that Kubernetes makes of a
// service, or Docker of a linked container, whose name begins with txl.
bool IsForeignVariable(absl::string_view name, absl::string_view value);

}  // namespace txl
