#include <utility>

#include "model/base/status_macros.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/vocabulary_kinds.h"

namespace txl {
namespace {

absl::StatusOr<SymbolSplit> ParseDelimiter(const nlohmann::json& json) {
  const auto field = json.find("delimiter");
  if (field == json.end() || field->is_null()) return SymbolSplit::kWhitespace;
  if (*field == "") return SymbolSplit::kCharacters;
  if (*field == " ") return SymbolSplit::kSpace;
  return TokenizerFieldError("delimiter", "must be null, \"\" or \" \"");
}

}  // namespace

LoadedVocabulary LoadSymbols(const TokenizerSource& source) {
  const nlohmann::json& json = source.json;
  TXL_RETURN_IF_ERROR(
      CheckFieldNames(json, {"file", "delimiter", "lower_case", "unknown",
                             "line_token", "double_line_tokens"}));
  SymbolRules rules;
  rules.strips_lines = true;
  TXL_ASSIGN_OR_RETURN(rules.split, ParseDelimiter(json));
  TXL_ASSIGN_OR_RETURN(rules.lower_case, BoolField(json, "lower_case", false));
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> symbols, FileSymbols(source));
  TXL_ASSIGN_OR_RETURN(rules.unknown_id, SymbolField(json, "unknown", symbols));
  TXL_ASSIGN_OR_RETURN(rules.line_id, SymbolField(json, "line_token", symbols));
  TXL_ASSIGN_OR_RETURN(rules.double_line_tokens,
                       BoolField(json, "double_line_tokens", false));
  if (rules.double_line_tokens && !rules.line_id) {
    return TokenizerFieldError("double_line_tokens", "needs a line_token");
  }
  return std::make_unique<SymbolVocabulary>("symbols", std::move(symbols),
                                            rules);
}

}  // namespace txl
