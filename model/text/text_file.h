#pragma once

// Text files of people: vocabularies, texts to train on or to evaluate.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// `content` as UTF-8, without the byte order mark that it may begin with; a
// view of it. Errors: InvalidArgument opening with `name`: another coding
// (UTF-16 or UTF-32, which hold zero bytes, or one that is not UTF-8, with its
// line, counted from 1).
absl::StatusOr<absl::string_view> TextOfFile(absl::string_view content,
                                             absl::string_view name);

}  // namespace txl
