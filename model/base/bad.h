#pragma once

// What reading of files answers with when they are not what they should be.

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace txl {

// INVALID_ARGUMENT. `what` has the file for its subject, or "it".
inline absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// INVALID_ARGUMENT, "file: what".
inline absl::Status Bad(absl::string_view file, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what));
}

}  // namespace txl
