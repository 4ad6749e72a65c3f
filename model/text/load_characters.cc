#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/utf8.h"
#include "model/text/vocabulary_kinds.h"

namespace txl {

LoadedVocabulary LoadCharacters(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(
      CheckFieldNames(source.json, {"file", "lower_case", "space"}));
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> symbols, FileSymbols(source));
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (FirstCharacter(symbols[i]).length != symbols[i].size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source.json["file"].get<std::string>(), ": symbol ",
                       i + 1, ": must be a single character"));
    }
  }
  TXL_ASSIGN_OR_RETURN(rules.lower_case,
                       BoolField(source.json, "lower_case", false));
  TXL_ASSIGN_OR_RETURN(rules.space_id,
                       SymbolField(source.json, "space", symbols));
  return std::make_unique<SymbolVocabulary>("characters", std::move(symbols),
                                            rules);
}

}  // namespace txl
