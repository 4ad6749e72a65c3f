#pragma once

// What a turn looks like on standard output.

#include <string>

#include "txl/v1/generation_service.pb.h"

namespace txl::cli {

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
