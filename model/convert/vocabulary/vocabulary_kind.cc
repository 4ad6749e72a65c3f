#include "model/convert/vocabulary/vocabulary_kind.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/base/status_macros.h"
#include "model/config/generation_defaults.h"
#include "model/config/token_kinds_file.h"
#include "model/music/event_ids.h"
#include "model/text/sentencepiece_model.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

using json = nlohmann::json;
using Symbols = std::vector<std::string>;

constexpr absl::string_view kTokenizer = "tokenizer.json";

bool IsMusic(absl::string_view family) {
  return family == "compound-word" || family == "remi";
}

bool AreDecimalBytes(const Symbols& symbols) {
  bool has_two_digits = false;
  for (const std::string& symbol : symbols) {
    int32_t value = -1;
    if (!absl::SimpleAtoi(symbol, &value) || value < 0 || value > 255 ||
        absl::StrCat(value) != symbol) {
      return false;
    }
    has_two_digits = has_two_digits || symbol.size() > 1;
  }
  return has_two_digits;
}

bool AreCharacters(const Symbols& symbols) {
  return !symbols.empty() &&
         std::all_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
           return FirstCharacter(symbol).length == symbol.size();
         });
}

// text8: a to z, and "_" for the space.
bool AreText8(const Symbols& symbols) {
  bool has_space = false;
  for (const std::string& symbol : symbols) {
    has_space = has_space || symbol == "_";
    if (symbol != "_" && (symbol < "a" || symbol > "z")) return false;
  }
  return has_space;
}

bool HasUpperCase(const Symbols& symbols) {
  return std::any_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
    return !(absl::StartsWith(symbol, "<") && absl::EndsWith(symbol, ">")) &&
           LowerCase(symbol) != symbol;
  });
}

std::optional<int32_t> Find(const Symbols& symbols, absl::string_view symbol) {
  const auto found = std::find(symbols.begin(), symbols.end(), symbol);
  if (found == symbols.end()) return std::nullopt;
  return static_cast<int32_t>(found - symbols.begin());
}

std::optional<int32_t> UnknownId(const Symbols& symbols,
                                 const NativeVocabulary& vocabulary) {
  const std::optional<int64_t> named = vocabulary.unknown_id;
  if (named && *named >= 0 && *named < static_cast<int64_t>(symbols.size())) {
    return static_cast<int32_t>(*named);
  }
  const std::optional<int32_t> id = Find(symbols, "<unk>");
  return id ? id : Find(symbols, "<UNK>");
}

// One a line where every symbol fits a line.
void PutSymbols(const Symbols& symbols, absl::string_view stem, json& tokenizer,
                std::map<std::string, std::string>& files) {
  const bool fits =
      std::none_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
        return absl::StrContains(symbol, '\n') ||
               (symbol.size() > 1 && symbol.back() == '\r');
      });
  const std::string name = absl::StrCat(stem, fits ? ".txt" : ".json");
  files[name] = fits ? absl::StrCat(absl::StrJoin(symbols, "\n"), "\n")
                     : absl::StrCat(json(symbols).dump(0), "\n");
  tokenizer["file"] = name;
}

void PutTokenizer(const json& tokenizer,
                  std::map<std::string, std::string>& files) {
  files[std::string(kTokenizer)] = absl::StrCat(tokenizer.dump(2), "\n");
}

void PutStart(std::optional<int32_t> id,
              std::map<std::string, std::string>& files) {
  if (!id) return;
  GenerationDefaults defaults;
  defaults.start_tokens = {*id};
  files["generation.json"] = GenerationDefaultsToJson(defaults);
}

// REQUIRES: symbols of events.
void PutKinds(const Symbols& symbols,
              std::map<std::string, std::string>& files) {
  const std::vector<TokenKind> kinds =
      KindsOfMusic(SymbolVocabulary("events", symbols, SymbolRules()));
  if (!kinds.empty()) files[kTokenKindsFile] = TokenKindsToJson(kinds);
}

void DescribeEvents(const Symbols& symbols, DescribedVocabulary& described) {
  json tokenizer = {{"kind", "events"}};
  PutSymbols(symbols, "events", tokenizer, described.files);
  PutTokenizer(tokenizer, described.files);
  std::optional<int32_t> bar = Find(symbols, "Bar_None");
  for (size_t i = 0; i < symbols.size() && !bar; ++i) {
    if (absl::StartsWith(symbols[i], "Bar")) bar = static_cast<int32_t>(i);
  }
  PutStart(bar, described.files);
  PutKinds(symbols, described.files);
}

void DescribeCharacters(const Symbols& symbols,
                        const NativeVocabulary& vocabulary,
                        DescribedVocabulary& described) {
  json tokenizer = {{"kind", "characters"}};
  PutSymbols(symbols, "vocab", tokenizer, described.files);
  if (AreText8(symbols)) {
    tokenizer["space"] = "_";
    tokenizer["lower_case"] = true;
  } else if (vocabulary.lower_case.value_or(false)) {
    tokenizer["lower_case"] = true;
  }
  PutTokenizer(tokenizer, described.files);
  PutStart(Find(symbols, "\n"), described.files);
}

void DescribeWords(const Symbols& symbols, const NativeVocabulary& vocabulary,
                   bool wikitext, DescribedVocabulary& described) {
  json tokenizer = {{"kind", wikitext ? "wikitext" : "symbols"}};
  PutSymbols(symbols, "vocab", tokenizer, described.files);
  tokenizer["lower_case"] =
      vocabulary.lower_case.value_or(!HasUpperCase(symbols));
  const std::optional<int32_t> unknown = UnknownId(symbols, vocabulary);
  if (unknown) tokenizer["unknown"] = symbols[*unknown];
  std::optional<int32_t> line = Find(symbols, "<eos>");
  if (!line && !wikitext) {
    line = Find(symbols, "<S>");
    if (line) tokenizer["double_line_tokens"] = true;
  }
  if (line) tokenizer["line_token"] = symbols[*line];
  if (wikitext) {
    tokenizer["special"] = {"<formula>"};
  } else if (vocabulary.delimiter) {
    tokenizer["delimiter"] = *vocabulary.delimiter;
  }
  PutTokenizer(tokenizer, described.files);
  PutStart(line, described.files);
}

std::string Notes(const RepairedSymbols& repaired) {
  std::vector<std::string> notes;
  if (repaired.from_latin1 > 0) {
    notes.push_back(absl::StrCat(repaired.from_latin1,
                                 " symbols that had been read as latin-1 are "
                                 "UTF-8 again"));
  }
  if (repaired.escaped > 0) {
    notes.push_back(absl::StrCat(repaired.escaped,
                                 " symbols that are not UTF-8 are escaped"));
  }
  return absl::StrJoin(notes, ", ");
}

}  // namespace

absl::StatusOr<DescribedVocabulary> DescribeVocabulary(
    const NativeVocabulary& vocabulary, const VocabularyKindRequest& request) {
  if (static_cast<int64_t>(vocabulary.symbols.size()) != request.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", vocabulary.symbols.size(),
        " symbols, the model's vocab_size is ", request.vocab_size));
  }
  const std::optional<std::string>& delimiter = vocabulary.delimiter;
  if (delimiter && *delimiter != "" && *delimiter != " ") {
    return absl::InvalidArgumentError(absl::StrCat(
        "delimiter: \"", absl::CHexEscape(*delimiter), "\" is unknown"));
  }
  TXL_ASSIGN_OR_RETURN(const RepairedSymbols repaired,
                       RepairSymbols(vocabulary.symbols));
  const Symbols& symbols = repaired.symbols;
  DescribedVocabulary described;
  described.notes = Notes(repaired);
  if (vocabulary.events || IsMusic(request.family)) {
    DescribeEvents(symbols, described);
  } else if (AreDecimalBytes(symbols)) {
    json tokenizer = {{"kind", "decimal_bytes"}};
    PutSymbols(symbols, "vocab", tokenizer, described.files);
    PutTokenizer(tokenizer, described.files);
    PutStart(Find(symbols, "10"), described.files);
  } else if (AreCharacters(symbols)) {
    DescribeCharacters(symbols, vocabulary, described);
  } else {
    const bool wikitext = request.family == "huggingface" && !delimiter &&
                          Find(symbols, "@-@").has_value();
    DescribeWords(symbols, vocabulary, wikitext, described);
  }
  return described;
}

DescribedVocabulary DescribeDigits() {
  DescribedVocabulary described;
  PutTokenizer({{"kind", "digits"}}, described.files);
  return described;
}

absl::StatusOr<DescribedVocabulary> DescribeSentencePiece(std::string model,
                                                          int64_t vocab_size) {
  TXL_ASSIGN_OR_RETURN(const SentencePieceModel parsed,
                       ParseSentencePieceModel(model));
  if (static_cast<int64_t>(parsed.pieces.size()) > vocab_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", parsed.pieces.size(),
                     " pieces, the model's vocab_size is ", vocab_size));
  }
  DescribedVocabulary described;
  PutTokenizer({{"kind", "sentencepiece"}, {"file", "spiece.model"}},
               described.files);
  described.files["spiece.model"] = std::move(model);
  return described;
}

}  // namespace txl
