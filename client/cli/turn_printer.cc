#include "client/cli/turn_printer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output.h"

namespace txl::cli {

std::string TurnPrinter::FormatToken(const v1::Token& token) {
  const bool first = tokens_++ == 0;
  if (mode_ == PrintMode::kText) return token.text();
  if (!logprobs_) return absl::StrCat(first ? "" : " ", token.token_id());
  std::string line =
      absl::StrFormat("%d %.9g", token.token_id(), token.logprob());
  for (const v1::TokenLogprob& other : token.top_logprobs()) {
    absl::StrAppendFormat(&line, " %d:%.9g", other.token_id(), other.logprob());
  }
  return line + "\n";
}

std::string TurnPrinter::Format(const v1::GenerateResponse& response) {
  std::string text;
  if (mode_ == PrintMode::kJson) {
    text = ToJson(response) + "\n";
  } else if (response.has_token()) {
    text = FormatToken(response.token());
  } else if (response.has_finished() && mode_ == PrintMode::kText) {
    text = response.finished().text();
  }
  for (const v1::Token& token : response.tokens().tokens()) {
    if (mode_ != PrintMode::kJson) text += FormatToken(token);
  }
  if (!text.empty()) {
    printed_ = true;
    at_line_start_ = text.back() == '\n';
  }
  return text;
}

std::string TurnPrinter::End() const { return at_line_start_ ? "" : "\n"; }

}  // namespace txl::cli
