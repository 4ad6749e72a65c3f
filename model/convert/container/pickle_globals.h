#pragma once

// Names that a pickle may not even mention.

#include "absl/strings/string_view.h"

namespace txl {

// Whether `module`.`name` is of use only to a pickle that wants to run
// something. Nothing is ever called here; such a file is refused because
// its author meant harm. Errors name the global.
bool IsForbiddenGlobal(absl::string_view module, absl::string_view name);

}  // namespace txl
