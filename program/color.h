#pragma once

// Emphasis where a person reads.

#include <string>

#include "absl/strings/string_view.h"

namespace txl {

// Whether what is written to the descriptor may carry colours: it is a terminal
// that knows them (TERM), and NO_COLOR is not set (https://no-color.org).
bool WantsColor(int fd);

enum class Emphasis { kTitle, kError, kWarning };

// The text with the terminal's codes around it; unchanged without `color`.
std::string Emphasize(absl::string_view text, Emphasis emphasis, bool color);

}  // namespace txl
