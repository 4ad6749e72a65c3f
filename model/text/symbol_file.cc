#include "model/text/symbol_file.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/text_file.h"

namespace txl {
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
