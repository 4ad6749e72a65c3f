#pragma once

// Numbers as settings have them: read alike in flags, environment variables and
// configuration files.

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace txl {

// A finite decimal number: "5", "+5", "0.5", "1e3". Absent for anything else:
// nothing, spaces around it, hexadecimal digits, "inf", "nan", and what a
// double cannot hold.
std::optional<double> FiniteNumber(absl::string_view text);

// A number as above that is whole, of any size, as plain digits without a plus
// sign or leading zeros: "1000" of "1e3", "8" of "08". Absent for others.
std::optional<std::string> WholeDigits(absl::string_view text);

}  // namespace txl
