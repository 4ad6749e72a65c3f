#include "client/cli/output.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text_check.h"

namespace txl::cli {
namespace {

absl::Status& FirstError() {
  static auto& status = *new absl::Status();
  return status;
}

}  // namespace

absl::Status OutputStatus() { return FirstError(); }

bool WriteOut(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      FirstError().Update(absl::ErrnoToStatus(errno, "standard output"));
      return false;
    }
    text.remove_prefix(written);
  }
  return true;
}

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for unknown Any types, of which the API has none.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

absl::StatusOr<std::string> ReadBytes(const std::string& path) {
  if (path != "-") return ReadUserFile(path);
  std::ostringstream bytes;
  bytes << std::cin.rdbuf();
  return std::move(bytes).str();
}

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  const absl::StatusOr<std::string> all = ReadBytes(path);
  if (!all.ok()) return all;
  const absl::Status status =
      CheckTextFile(path == "-" ? "standard input" : path, *all);
  if (!status.ok()) return status;
  return std::string(WithoutMark(*all));
}

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
