#pragma once

// Texts of pickles in Python's notations, and names that a pickle may not even
// mention.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// The bytes of a quoted Python-2 string with escapes ('it\'s\n'). Errors:
// InvalidArgument when quotes or escapes are broken.
absl::StatusOr<std::string> UnquoteString(absl::string_view quoted);

// UTF-8 of Python's raw-unicode-escape: a backslash with u and four or U and
// eight hexadecimal digits is an escape, other bytes are Latin-1. Errors:
// InvalidArgument when an escape is broken.
absl::StatusOr<std::string> DecodeRawUnicode(absl::string_view text);

// The bytes whose Latin-1 characters are the UTF-8 `text`: how protocols 0 to 2
// write bytes. Errors: InvalidArgument when a character is not Latin-1.
absl::StatusOr<std::string> LatinBytes(absl::string_view text);

// `code` as UTF-8; surrogates, too, get three bytes. REQUIRES: <= 0x10FFFF.
void AppendCodePoint(uint32_t code, std::string& out);

// A name out of a file for an error message: printable ASCII, shortened.
std::string Printable(absl::string_view name);

// Whether `module`.`name` is of use only to a pickle that wants to run
// something. Nothing is ever called here; such a file is refused because
// its author meant harm. Errors name the global.
bool IsForbiddenGlobal(absl::string_view module, absl::string_view name);

}  // namespace txl
