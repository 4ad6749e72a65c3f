#pragma once

// Files of the user, and texts, which are checked before they are sent: a
// server could only say that the whole message does not parse.

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}

namespace txl {

// The bytes of a file. Errors name the path: InvalidArgument for a directory,
// else NotFound.
absl::StatusOr<std::string> ReadUserFile(const std::string& path);

// The offset of the first bytes that are not UTF-8 (Unicode's table 3-7: no
// surrogates, no overlong forms, nothing above U+10FFFF). Absent: it is valid.
std::optional<size_t> FirstNonUtf8(absl::string_view text);

// InvalidArgument "WHAT is not UTF-8: line 3, byte 17 (0xE9)", both counted
// from 1, where `text` is not valid UTF-8.
absl::Status CheckUtf8(absl::string_view what, absl::string_view text);

// Checks the text of a file as CheckUtf8 does, and refuses one with a NUL,
// which UTF-16 has (InvalidArgument).
absl::Status CheckTextFile(absl::string_view path, absl::string_view text);

// `text` without the byte order mark that some editors begin a file with.
absl::string_view WithoutMark(absl::string_view text);

// CheckUtf8 for every string field of a message and of those in it, by the
// field's path: "stop.stop_texts[1]".
absl::Status CheckTexts(const google::protobuf::Message& message);

}  // namespace txl
