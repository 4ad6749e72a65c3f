#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/utf8.h"
#include "model/text/vocabulary_kinds.h"

namespace txl {
namespace {

// A name as one word: whitespace and "%" become %XX, byte by byte. The rest
// stays, so the spelling of two names is never the same.
std::string Word(absl::string_view name) {
  std::string word;
  while (!name.empty()) {
    const Utf8Character next = FirstCharacter(name);
    const absl::string_view character = name.substr(0, next.length);
    if (IsWhitespace(next.code_point) || character == "%") {
      for (const char byte : character) {
        absl::StrAppendFormat(&word, "%%%02X",
                              static_cast<unsigned char>(byte));
      }
    } else {
      absl::StrAppend(&word, character);
    }
    name.remove_prefix(next.length);
  }
  return word;
}

}  // namespace

LoadedVocabulary LoadEvents(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(source.json, {"file"}));
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> names, FileSymbols(source));
  for (std::string& name : names) name = Word(name);
  return std::make_unique<SymbolVocabulary>("events", std::move(names),
                                            SymbolRules());
}

}  // namespace txl
