#pragma once

// What goes to standard output.

#include <string>

#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}

namespace txl::cli {

// Writes all of it now. False: the reader is gone.
bool WriteOut(absl::string_view text);

// The message in protobuf's JSON mapping on one line, with fields of value zero
// (a first token's index) and without a line end.
std::string ToJson(const google::protobuf::Message& message);

// A file, or standard input for "-". False: it cannot be read.
bool ReadInput(const std::string& path, std::string* text);

}  // namespace txl::cli
