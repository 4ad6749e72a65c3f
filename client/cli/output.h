#pragma once

// What goes to standard output.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}

namespace txl::cli {

// Writes all of it now. False: it cannot be written, as OutputStatus() then
// says.
bool WriteOut(absl::string_view text);
// The first error of WriteOut in this process.
absl::Status OutputStatus();

// The message in protobuf's JSON mapping on one line, with fields of value zero
// (a first token's index) and without a line end.
std::string ToJson(const google::protobuf::Message& message);

// The text of a file, or of standard input for "-", without a byte order mark
// at its beginning. Errors name it: NotFound when it cannot be read,
// InvalidArgument when it is not UTF-8 or holds a NUL.
absl::StatusOr<std::string> ReadInput(const std::string& path);

}  // namespace txl::cli
