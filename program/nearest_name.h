#pragma once

// What somebody may have meant by a misspelt name.

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

// The name that takes the fewest changes of a character (insert, remove,
// replace, swap two neighbours), the first of several; empty where all take
// more than a third of `wanted`'s characters, or more than `most_changes`:
// there is nothing to suggest.
std::string NearestName(
    absl::string_view wanted, const std::vector<std::string>& names,
    size_t most_changes = std::numeric_limits<size_t>::max());

// "; did you mean NAME?", or nothing where there is nothing to suggest: the end
// of a message about `wanted`.
std::string DidYouMean(absl::string_view wanted,
                       const std::vector<std::string>& names);

}  // namespace txl
