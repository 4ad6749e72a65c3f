#pragma once

// Cutting long texts for a server that limits the size of a call.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl::cli {

// Pieces of at most `max_bytes` bytes that together are `text`, each as long as
// possible. Cut after a line end, where tokenising the pieces gives the tokens
// of the whole whatever the vocabulary; in a line longer than that before a
// space, else at a character's border.
// REQUIRES: max_bytes >= 4 (a character).
std::vector<absl::string_view> SplitText(absl::string_view text,
                                         size_t max_bytes);

// Characters (code points) of valid UTF-8.
int64_t CountCharacters(absl::string_view text);

}  // namespace txl::cli
