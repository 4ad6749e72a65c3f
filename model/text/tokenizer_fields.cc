#include "model/text/tokenizer_fields.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"

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
                                 absl::StrCat("is not a field of kind ",
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

namespace {

absl::Status SymbolError(absl::string_view name, absl::string_view unit,
                         size_t index, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", unit, " ", index + 1, ": ", problem));
}

std::vector<std::string> SplitLines(absl::string_view content) {
  std::vector<std::string> lines;
  while (!content.empty()) {
    const size_t end = content.find('\n');
    lines.emplace_back(content.substr(0, end));
    if (end == absl::string_view::npos) break;
    content.remove_prefix(end + 1);
  }
  return lines;
}

absl::StatusOr<std::vector<std::string>> ParseArray(absl::string_view content,
                                                    absl::string_view name) {
  const nlohmann::json parsed =
      nlohmann::json::parse(content.begin(), content.end(), nullptr, false);
  if (!parsed.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not a JSON array of strings"));
  }
  std::vector<std::string> symbols;
  symbols.reserve(parsed.size());
  for (const nlohmann::json& element : parsed) {
    if (!element.is_string()) {
      return SymbolError(name, "element", symbols.size(), "is not a string");
    }
    symbols.push_back(element.get<std::string>());
  }
  return symbols;
}

absl::Status CheckSymbols(const std::vector<std::string>& symbols,
                          absl::string_view name, absl::string_view unit) {
  absl::flat_hash_map<absl::string_view, size_t> first_index;
  first_index.reserve(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].empty()) {
      return SymbolError(name, unit, i, "the symbol is empty");
    }
    const auto [entry, is_new] = first_index.emplace(symbols[i], i);
    if (!is_new) {
      return SymbolError(name, unit, i,
                         absl::StrCat("the symbol is already on ", unit, " ",
                                      entry->second + 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseSymbolFile(
    absl::string_view file, absl::string_view name) {
  TXL_ASSIGN_OR_RETURN(const absl::string_view content, TextOfFile(file, name));
  if (absl::EndsWith(name, ".json")) {
    absl::StatusOr<std::vector<std::string>> symbols =
        ParseArray(content, name);
    if (!symbols.ok()) return symbols;
    absl::Status status = CheckSymbols(*symbols, name, "element");
    if (!status.ok()) return status;
    return symbols;
  }
  std::vector<std::string> symbols = SplitLines(content);
  for (size_t i = 0; i < symbols.size(); ++i) {
    // A lone "\r" may be meant; at the end of a word it never is.
    if (symbols[i].size() > 1 && symbols[i].back() == '\r') {
      return SymbolError(name, "line", i, "ends with a carriage return");
    }
  }
  absl::Status status = CheckSymbols(symbols, name, "line");
  if (!status.ok()) return status;
  return symbols;
}

}  // namespace txl
