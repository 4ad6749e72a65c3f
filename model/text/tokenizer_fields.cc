#include "model/text/tokenizer_fields.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/text/symbol_file.h"

namespace txl {

using Json = nlohmann::json;

absl::Status TokenizerFieldError(absl::string_view field,
                                 absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(kTokenizerFile, ": ", field, ": ", problem));
}

absl::Status CheckFieldNames(const Json& json,
                             std::initializer_list<absl::string_view> known) {
  for (const auto& [name, value] : json.items()) {
    if (name == "kind") continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return TokenizerFieldError(name,
                                 absl::StrCat("is no field of kind ",
                                              json["kind"].get<std::string>()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FileName(const TokenizerSource& source) {
  const auto field = source.json.find("file");
  if (field == source.json.end() || !field->is_string()) {
    return TokenizerFieldError("file",
                               "must be the name of the vocabulary file");
  }
  std::string name = field->get<std::string>();
  // Everything that a model needs lies in its directory.
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    return TokenizerFieldError("file", "must be a file name without a folder");
  }
  return name;
}

absl::StatusOr<std::string> FileContent(const TokenizerSource& source) {
  TXL_ASSIGN_OR_RETURN(const std::string name, FileName(source));
  absl::StatusOr<std::string> content =
      ReadRegularFile(source.directory / name, kMaxVocabularyFileBytes);
  if (!content.ok())
    return TokenizerFieldError("file", content.status().message());
  return content;
}

absl::Status CheckSymbolCount(const TokenizerSource& source, size_t count) {
  if (static_cast<int64_t>(count) == source.vocab_size) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(source.json["file"].get<std::string>(), ": has ", count,
                   " symbols, the model's vocab_size is ", source.vocab_size));
}

absl::StatusOr<std::vector<std::string>> FileSymbols(
    const TokenizerSource& source) {
  TXL_ASSIGN_OR_RETURN(const std::string name, FileName(source));
  TXL_ASSIGN_OR_RETURN(const std::string content, FileContent(source));
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> symbols,
                       ParseSymbolFile(content, name));
  TXL_RETURN_IF_ERROR(CheckSymbolCount(source, symbols.size()));
  return symbols;
}

absl::StatusOr<bool> BoolField(const Json& json, const char* name,
                               bool fallback) {
  const auto field = json.find(name);
  if (field == json.end()) return fallback;
  if (!field->is_boolean())
    return TokenizerFieldError(name, "must be true or false");
  return field->get<bool>();
}

absl::StatusOr<std::optional<int32_t>> SymbolField(
    const Json& json, const char* name,
    const std::vector<std::string>& symbols) {
  const auto field = json.find(name);
  if (field == json.end() || field->is_null()) {
    return std::optional<int32_t>();
  }
  if (!field->is_string()) {
    return TokenizerFieldError(name, "must be a symbol or null");
  }
  const std::string symbol = field->get<std::string>();
  const auto found = std::find(symbols.begin(), symbols.end(), symbol);
  if (found == symbols.end()) {
    return TokenizerFieldError(name,
                               "the symbol is not in the vocabulary file");
  }
  return std::optional<int32_t>(static_cast<int32_t>(found - symbols.begin()));
}

}  // namespace txl
