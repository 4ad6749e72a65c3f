#pragma once

// Regular expressions on UTF-8 text (PCRE2 syntax).

#include <string>

#include "absl/strings/string_view.h"

namespace txl {

// A pattern that is part of the program. Thread-safe.
class Pattern {
 public:
  // REQUIRES: well-formed; aborts otherwise. Patterns must match in linear
  // time: text comes from users.
  explicit Pattern(const std::string& pattern);
  Pattern(Pattern&& other) noexcept;
  Pattern& operator=(Pattern&&) = delete;
  ~Pattern();

  // `text` with every match replaced, left to right, none overlapping. "$1" in
  // `replacement` is the first group, "$0" the match.
  // REQUIRES: text is valid UTF-8; every "$" in the replacement is followed by
  // the digit of a group that takes part in every match.
  std::string Replace(absl::string_view text,
                      const std::string& replacement) const;

  // Whether the pattern occurs in `text`. REQUIRES: text is valid UTF-8.
  bool Matches(absl::string_view text) const;

 private:
  void* code_;              // pcre2_code
  bool is_native_ = false;  // compiled to machine code
};

}  // namespace txl
