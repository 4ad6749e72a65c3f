#pragma once

// The keys of a config.json and of what replaces its fields.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace txl {

// Names of the fields that ModelConfigToJson writes.
const std::vector<std::string>& ModelConfigFields();

// Refuses a key that looks like a field misspelt, or that is training code's
// name for one, and a field of another type than its own. Other keys are
// notes of their author. Errors as of ParseModelConfig.
absl::Status CheckModelConfigKeys(const nlohmann::json& object,
                                  absl::string_view origin);

}  // namespace txl
