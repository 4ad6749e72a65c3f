#include <utility>

#include "model/base/status_macros.h"
#include "model/text/vocabulary_kinds.h"
#include "model/text/wikitext_vocabulary.h"

namespace txl {
namespace {

// Words that text is never cut at, so they must be words.
absl::StatusOr<std::vector<std::string>> SpecialField(
    const nlohmann::json& json) {
  std::vector<std::string> special;
  const auto field = json.find("special");
  if (field == json.end()) return special;
  if (!field->is_array()) {
    return TokenizerFieldError("special", "must be an array of strings");
  }
  for (const nlohmann::json& element : *field) {
    if (!element.is_string()) {
      return TokenizerFieldError("special", "must be an array of strings");
    }
    special.push_back(element.get<std::string>());
    const std::string& word = special.back();
    if (word.empty() || word.find_first_of(" \t\r\n") != std::string::npos) {
      return TokenizerFieldError("special", "must be words without whitespace");
    }
  }
  return special;
}

}  // namespace

LoadedVocabulary LoadWikitext(const TokenizerSource& source) {
  const nlohmann::json& json = source.json;
  TXL_RETURN_IF_ERROR(CheckFieldNames(
      json, {"file", "lower_case", "unknown", "line_token", "special"}));
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> symbols, FileSymbols(source));
  WikitextRules rules;
  TXL_ASSIGN_OR_RETURN(rules.lower_case, BoolField(json, "lower_case", false));
  TXL_ASSIGN_OR_RETURN(rules.unknown_id, SymbolField(json, "unknown", symbols));
  TXL_ASSIGN_OR_RETURN(rules.line_id, SymbolField(json, "line_token", symbols));
  TXL_ASSIGN_OR_RETURN(rules.special, SpecialField(json));
  return std::make_unique<WikitextVocabulary>(std::move(symbols),
                                              std::move(rules));
}

}  // namespace txl
