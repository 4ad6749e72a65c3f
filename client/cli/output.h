#pragma once

// What goes to standard output.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "txl/v1/generation_service.pb.h"

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

// The bytes of a file, or of standard input for "-". Errors: ReadUserFile's.
absl::StatusOr<std::string> ReadBytes(const std::string& path);

// ReadBytes of a text, without a byte order mark at its beginning. Errors also:
// InvalidArgument, naming a file that is not UTF-8 or holds a NUL.
absl::StatusOr<std::string> ReadInput(const std::string& path);

// What a turn looks like on standard output.

enum class PrintMode {
  kText,    // the text as it comes
  kTokens,  // ids separated by spaces; with log-probabilities a token a line
  kJson,    // every response in protobuf's JSON mapping, one a line
};

class TurnPrinter {
 public:
  // `logprobs`: kTokens shows "ID LOGPROB [ALTERNATIVE:LOGPROB ...]" lines.
  TurnPrinter(PrintMode mode, bool logprobs)
      : mode_(mode), logprobs_(logprobs) {}

  // What to print for a response; possibly empty.
  std::string Format(const v1::GenerateResponse& response);
  // What to print after the last response: a line end where one is missing.
  std::string End() const;

  // True when kText had tokens and none of them had text.
  bool silent() const {
    return mode_ == PrintMode::kText && tokens_ > 0 && !printed_;
  }

 private:
  std::string FormatToken(const v1::Token& token);

  PrintMode mode_;
  bool logprobs_;
  int64_t tokens_ = 0;
  bool printed_ = false;
  bool at_line_start_ = true;
};

}  // namespace txl::cli
