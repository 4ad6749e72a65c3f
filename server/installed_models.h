#pragma once

// Models that are installed together with the program, and served by name.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// Where they lie: ../share/txl/models from the folder of the program's own
// file, whatever links led to it. Empty where the system does not say.
std::string InstalledModels();

// The model directory that `model` means: where it has a '/' or names something
// that is here, itself; else the directory of that name in `installed`.
// Thread-safe. Errors: NotFound, with both places and what is installed.
absl::StatusOr<std::string> FindModel(const std::string& model,
                                      absl::string_view installed);

}  // namespace txl
