#include "program/color.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Select Graphic Rendition of ECMA-48.
const char* Code(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kTitle:
      return "\x1b[1m";
    case Emphasis::kError:
      return "\x1b[1;31m";
    case Emphasis::kWarning:
      return "\x1b[33m";
  }
  return "";
}

}  // namespace

bool WantsColor(int fd) {
  const std::string term = Variable("TERM");
  return Variable("NO_COLOR").empty() && !term.empty() && term != "dumb" &&
         isatty(fd) == 1;
}

std::string Emphasize(absl::string_view text, Emphasis emphasis, bool color) {
  if (!color) return std::string(text);
  return absl::StrCat(Code(emphasis), text, "\x1b[0m");
}

}  // namespace txl
