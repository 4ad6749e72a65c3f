#pragma once

// UTF-8: checking, walking, and repair of text that arrives byte by byte, and
// text files. Well-formed means Unicode's table 3-7: no surrogates, no overlong
// forms, nothing above U+10FFFF.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// Stands for bytes that are not a character: U+FFFD.
inline constexpr char kReplacementCharacter[] = "\xEF\xBF\xBD";

bool IsValidUtf8(absl::string_view bytes);

// `bytes` with every ill-formed part replaced by U+FFFD: one for each maximal
// subpart (Unicode 15, section 3.9), so never more than one a byte. Valid text
// is returned unchanged.
std::string ReplaceInvalidUtf8(absl::string_view bytes);

struct Utf8Character {
  int32_t code_point = 0;
  size_t length = 0;  // bytes, 1..4
};

// The first character of `text`.
// REQUIRES: text is not empty and valid UTF-8.
Utf8Character FirstCharacter(absl::string_view text);

// Characters of `text`. REQUIRES: it is valid UTF-8.
int64_t CodePoints(absl::string_view text);

// Whether Python's str.split() splits at the character; the data sets of the
// published models were cut into words by it.
bool IsWhitespace(int32_t code_point);

// `text` without the whitespace at its ends. REQUIRES: it is valid UTF-8.
absl::string_view StripWhitespace(absl::string_view text);

// Cuts the first line off `text`; it ends at "\n", "\r" or "\r\n", which is
// left out, or at the end of the text. REQUIRES: text is not empty.
absl::string_view TakeLine(absl::string_view& text);

// Lower case character by character (Unicode's simple mapping).
// REQUIRES: text is valid UTF-8.
std::string LowerCase(absl::string_view text);

// The longest start of `text` that has at most max_bytes and ends at a
// character border. REQUIRES: text is valid UTF-8.
absl::string_view Utf8Prefix(absl::string_view text, size_t max_bytes);

// Bytes in, characters out: holds the bytes of an incomplete character.
// Copyable; not thread-safe.
class Utf8Assembler {
 public:
  // Appends to `out` what is certain with `byte`: nothing, a character, U+FFFD
  // for held bytes that `byte` does not continue, or both.
  void Add(char byte, std::string& out);

  // Appends U+FFFD when bytes are held, and drops them.
  void Flush(std::string& out);

  // The bytes of the incomplete character.
  const std::string& held() const { return held_; }
  // False: the bytes are not a proper prefix of a character; nothing changes.
  bool SetHeld(absl::string_view bytes);

 private:
  std::string held_;  // a proper prefix of a character; 0..3 bytes
};

// Text files of people: vocabularies, texts to train on or to evaluate.

// `content` as UTF-8, without the byte order mark that it may begin with; a
// view of it. Errors: InvalidArgument opening with `name`: another coding
// (UTF-16 or UTF-32, which hold zero bytes, or one that is not UTF-8, with
// line and byte, counted from 1).
absl::StatusOr<absl::string_view> TextOfFile(absl::string_view content,
                                             absl::string_view name);

}  // namespace txl
