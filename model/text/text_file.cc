#include "model/text/text_file.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

constexpr absl::string_view kMark = "\xEF\xBB\xBF";

// The line of the first ill-formed character. No such character has a line
// feed in it.
int64_t BadLine(absl::string_view text) {
  int64_t line = 1;
  while (true) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos || !IsValidUtf8(text.substr(0, end))) {
      return line;
    }
    text.remove_prefix(end + 1);
    ++line;
  }
}

}  // namespace

absl::StatusOr<absl::string_view> TextOfFile(absl::string_view content,
                                             absl::string_view name) {
  if (absl::StrContains(content, '\0') ||
      absl::StartsWith(content, "\xFF\xFE") ||
      absl::StartsWith(content, "\xFE\xFF")) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not UTF-8 (UTF-16?); save it as UTF-8"));
  }
  absl::ConsumePrefix(&content, kMark);
  if (IsValidUtf8(content)) return content;
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": line ", BadLine(content), ": is not UTF-8; save it as UTF-8"));
}

}  // namespace txl
