#include "model/text/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace txl {
namespace {

// Length of the character that opens `text`; 0 when ill-formed or incomplete.
size_t CharacterLength(absl::string_view text, int32_t* code_point) {
  utf8proc_int32_t decoded = -1;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &decoded);
  if (length <= 0) return 0;
  if (code_point != nullptr) *code_point = decoded;
  return static_cast<size_t>(length);
}

// Whether more bytes can make `bytes` one character. The bytes that may follow
// form one range that contains 0x80 or 0xBF, so trying these two is enough.
bool IsCharacterPrefix(absl::string_view bytes) {
  const size_t length =
      utf8proc_utf8class[static_cast<unsigned char>(bytes[0])];
  if (bytes.size() >= length) return false;
  for (const char continuation : {'\x80', '\xBF'}) {
    std::string completed(bytes);
    completed.resize(length, continuation);
    if (CharacterLength(completed, nullptr) == length) return true;
  }
  return false;
}

}  // namespace

bool IsValidUtf8(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = CharacterLength(bytes, nullptr);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string ReplaceInvalidUtf8(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Assembler assembler;
  for (const char byte : bytes) assembler.Add(byte, out);
  assembler.Flush(out);
  return out;
}

Utf8Character FirstCharacter(absl::string_view text) {
  Utf8Character first;
  first.length = CharacterLength(text, &first.code_point);
  return first;
}

int64_t CodePoints(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (byte & 0xC0) != 0x80; });
}

bool IsWhitespace(int32_t code_point) {
  if (code_point < 0x80) {  // most text, and much faster
    return code_point == ' ' || (code_point >= 0x09 && code_point <= 0x0D) ||
           (code_point >= 0x1C && code_point <= 0x1F);
  }
  const utf8proc_property_t* property = utf8proc_get_property(code_point);
  return property->category == UTF8PROC_CATEGORY_ZS ||
         property->bidi_class == UTF8PROC_BIDI_CLASS_WS ||
         property->bidi_class == UTF8PROC_BIDI_CLASS_B ||
         property->bidi_class == UTF8PROC_BIDI_CLASS_S;
}

absl::string_view StripWhitespace(absl::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = FirstCharacter(text.substr(at));
    if (!IsWhitespace(next.code_point)) {
      begin = std::min(begin, at);
      end = at + next.length;
    }
    at += next.length;
  }
  // Not a null view: that splits into no pieces at all.
  return begin < end ? text.substr(begin, end - begin) : text.substr(0, 0);
}

absl::string_view TakeLine(absl::string_view& text) {
  const size_t end = text.find_first_of("\r\n");
  const absl::string_view line = text.substr(0, end);
  if (end == absl::string_view::npos) {
    text.remove_prefix(text.size());
    return line;
  }
  const bool two = text.substr(end, 2) == "\r\n";
  text.remove_prefix(end + (two ? 2 : 1));
  return line;
}

std::string LowerCase(absl::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character first = FirstCharacter(text);
    utf8proc_uint8_t encoded[4];
    const utf8proc_ssize_t length =
        utf8proc_encode_char(utf8proc_tolower(first.code_point), encoded);
    lower.append(reinterpret_cast<const char*>(encoded),
                 static_cast<size_t>(length));
    text.remove_prefix(first.length);
  }
  return lower;
}

absl::string_view Utf8Prefix(absl::string_view text, size_t max_bytes) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t length = FirstCharacter(text.substr(end)).length;
    if (end + length > max_bytes) break;
    end += length;
  }
  return text.substr(0, end);
}

void Utf8Assembler::Add(char byte, std::string& out) {
  held_.push_back(byte);
  if (CharacterLength(held_, nullptr) == held_.size()) {
    out += held_;
    held_.clear();
    return;
  }
  if (IsCharacterPrefix(held_)) return;
  out += kReplacementCharacter;
  const bool alone = held_.size() == 1;
  held_.clear();
  // The byte that broke a character may itself open one.
  if (!alone) Add(byte, out);
}

void Utf8Assembler::Flush(std::string& out) {
  if (!held_.empty()) out += kReplacementCharacter;
  held_.clear();
}

bool Utf8Assembler::SetHeld(absl::string_view bytes) {
  if (!bytes.empty() && !IsCharacterPrefix(bytes)) return false;
  held_ = std::string(bytes);
  return true;
}

namespace {

constexpr absl::string_view kMark = "\xEF\xBB\xBF";

// "line 2, byte 4", counted from 1, of the first ill-formed character.
std::string BadPlace(absl::string_view text) {
  size_t line = 1, begin = 0, at = 0;
  while (at < text.size()) {
    const size_t length = CharacterLength(text.substr(at), nullptr);
    if (length == 0) break;
    if (text[at] == '\n') {
      ++line;
      begin = at + 1;
    }
    at += length;
  }
  return absl::StrCat("line ", line, ", byte ", at - begin + 1);
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
  if (IsValidUtf8(content)) return absl::StripPrefix(content, kMark);
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": ", BadPlace(content), ": is not UTF-8; save it as UTF-8"));
}

}  // namespace txl
