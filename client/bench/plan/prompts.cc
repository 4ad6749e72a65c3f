#include "client/bench/plan/prompts.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/text_check.h"

namespace txl::bench {
namespace {

bool ReadTokens(const nlohmann::json& tokens, std::vector<uint32_t>* ids) {
  if (!tokens.is_array() || tokens.empty()) return false;
  for (const nlohmann::json& token : tokens) {
    if (!token.is_number_unsigned() ||
        token.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      return false;
    }
    ids->push_back(token.get<uint32_t>());
  }
  return true;
}

// False: not a prompt.
bool ReadPrompt(absl::string_view line, Prompt* prompt) {
  const nlohmann::json json =
      nlohmann::json::parse(line.begin(), line.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (!json.is_object() || json.contains("text") == json.contains("tokens")) {
    return false;
  }
  if (json.contains("tokens"))
    return ReadTokens(json["tokens"], &prompt->tokens);
  if (!json["text"].is_string()) return false;
  prompt->text = json["text"].get<std::string>();
  return !prompt->text.empty();
}

}  // namespace

std::vector<Prompt> ParsePromptLines(absl::string_view text) {
  std::vector<Prompt> prompts;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripSuffix(line, "\r");
    if (!line.empty()) prompts.push_back({std::string(line), {}});
  }
  return prompts;
}

absl::StatusOr<std::vector<Prompt>> ParsePromptObjects(absl::string_view text) {
  std::vector<Prompt> prompts;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (line.empty()) continue;
    Prompt prompt;
    if (!ReadPrompt(line, &prompt)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number,
                       " is not an object with either \"text\" or \"tokens\""));
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

absl::StatusOr<std::vector<Prompt>> ReadPrompts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)),
                        std::istreambuf_iterator<char>());
  if (!file) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  absl::Status status = CheckTextFile(path, all);
  if (!status.ok()) return status;
  const absl::string_view text = WithoutMark(all);
  absl::StatusOr<std::vector<Prompt>> prompts = ParsePromptLines(text);
  if (absl::EndsWith(path, ".jsonl")) prompts = ParsePromptObjects(text);
  if (!prompts.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", prompts.status().message()));
  }
  if (prompts->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no prompt"));
  }
  return prompts;
}

}  // namespace txl::bench
