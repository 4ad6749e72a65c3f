#pragma once

// Vocabulary files: the symbols of a vocabulary in the order of their ids.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// The symbols in the content of a file: a JSON array of strings when `name`
// ends in
// ".json", else one symbol a line (a line ends with "\n"; the last one may go
// without). Symbols are taken as they stand; they are not stripped.
// Errors: InvalidArgument opening with `name` and naming the line (or the
// array element; both counted from 1): an empty symbol, a symbol that was
// there before, a line that ends with "\r\n"; those of TextOfFile, which drops
// a byte order mark.
absl::StatusOr<std::vector<std::string>> ParseSymbolFile(
    absl::string_view file, absl::string_view name);

}  // namespace txl
