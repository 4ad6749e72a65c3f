#pragma once

// English abbreviations: words whose period is part of them.

#include "absl/strings/string_view.h"

namespace txl {

// "Mr", "Dec", a single capital letter, ... (without the period).
bool IsMosesPrefix(absl::string_view word);

// "No", "Art", "pp": before a number only.
bool IsMosesNumberPrefix(absl::string_view word);

}  // namespace txl
