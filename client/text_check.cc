#include "client/text_check.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace txl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kReadBytes = 256 << 10;
constexpr absl::string_view kMark = "\xEF\xBB\xBF";

// Bytes of the character that opens `text`; 0 where it is none.
size_t CharacterLength(absl::string_view text) {
  const auto at = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // What the first byte leaves to the second one.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return length;
}

std::string Place(absl::string_view text, size_t byte) {
  const absl::string_view before = text.substr(0, byte);
  const size_t line_end = before.rfind('\n');
  const size_t line_begin =
      line_end == absl::string_view::npos ? 0 : line_end + 1;
  return absl::StrCat("line ",
                      1 + std::count(before.begin(), before.end(), '\n'),
                      ", byte ", byte - line_begin + 1);
}

absl::Status CheckField(const Message& message, const FieldDescriptor& field,
                        const std::string& path);

absl::Status CheckMessage(const Message& message, const std::string& path) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    absl::Status status =
        CheckField(message, *field, absl::StrCat(path, field->name()));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckField(const Message& message, const FieldDescriptor& field,
                        const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_text = field.type() == FieldDescriptor::TYPE_STRING;
  if (!is_text && field.type() != FieldDescriptor::TYPE_MESSAGE) {
    return absl::OkStatus();
  }
  std::string scratch;
  if (!field.is_repeated()) {
    if (!is_text) {
      return CheckMessage(reflection.GetMessage(message, &field), path + ".");
    }
    return CheckUtf8(path,
                     reflection.GetStringReference(message, &field, &scratch));
  }
  const int count = reflection.FieldSize(message, &field);
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat(path, "[", i, "]");
    const absl::Status status =
        is_text
            ? CheckUtf8(name, reflection.GetRepeatedStringReference(
                                  message, &field, i, &scratch))
            : CheckMessage(reflection.GetRepeatedMessage(message, &field, i),
                           name + ".");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadUserFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string bytes;
  ssize_t got = file < 0 ? -1 : 1;
  while (got > 0 || (file >= 0 && got < 0 && errno == EINTR)) {
    const size_t size = bytes.size();
    bytes.resize(size + kReadBytes);
    got = read(file, &bytes[size], kReadBytes);
    bytes.resize(size + std::max<ssize_t>(got, 0));
  }
  const int error = errno;
  if (file >= 0) close(file);
  if (got == 0) return bytes;
  if (error == EISDIR) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory"));
  }
  return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
}

std::optional<size_t> FirstNonUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = CharacterLength(text.substr(at, 4));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

absl::Status CheckUtf8(absl::string_view what, absl::string_view text) {
  const std::optional<size_t> wrong = FirstNonUtf8(text);
  if (!wrong.has_value()) return absl::OkStatus();
  const bool utf16 =
      absl::StartsWith(text, "\xFF\xFE") || absl::StartsWith(text, "\xFE\xFF");
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is not UTF-8: ", Place(text, *wrong),
      absl::StrFormat(" (0x%02X)", static_cast<unsigned char>(text[*wrong])),
      utf16 ? "; it begins as UTF-16 does" : ""));
}

absl::Status CheckTextFile(absl::string_view path, absl::string_view text) {
  absl::Status status = CheckUtf8(path, text);
  if (!status.ok()) return status;
  const size_t nul = text.find('\0');
  if (nul == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is not UTF-8 text: ", Place(text, nul),
                   " is a NUL, as in UTF-16 or in a file that is not text"));
}

absl::string_view WithoutMark(absl::string_view text) {
  return absl::StripPrefix(text, kMark);
}

absl::Status CheckTexts(const Message& message) {
  return CheckMessage(message, "");
}

}  // namespace txl
