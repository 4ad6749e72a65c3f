#include "model/text/symbol_vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"
#include "model/text/tokenizer_fields.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

constexpr size_t kMaxShownBytes = 40;

class SymbolDetokenizer final : public Detokenizer {
 public:
  SymbolDetokenizer(const std::vector<std::string>& symbols,
                    const SymbolRules& rules)
      : Detokenizer(static_cast<int64_t>(symbols.size())),
        symbols_(&symbols),
        rules_(&rules) {}

  std::string Flush() override { return ""; }

  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<SymbolDetokenizer>(*this);
  }

  // "l": in a line, "w": also after a word.
  std::string State() const override {
    if (after_word_) return "w";
    return line_is_open_ ? "l" : "";
  }

  bool SetState(absl::string_view state) override {
    after_word_ = state == "w";
    line_is_open_ = !state.empty();
    const bool has_words = rules_->split != SymbolSplit::kCharacters;
    return state == State() && (has_words || !after_word_);
  }

 private:
  std::string AddKnown(int32_t id) override {
    if (rules_->line_id == id) return LineToken();
    line_is_open_ = true;
    if (rules_->space_id == id) return " ";
    const std::string& symbol = (*symbols_)[id];
    if (rules_->split == SymbolSplit::kCharacters) return symbol;
    const bool needs_space = std::exchange(after_word_, true);
    return needs_space ? absl::StrCat(" ", symbol) : symbol;
  }

  std::string LineToken() {
    after_word_ = false;
    if (!rules_->double_line_tokens) return "\n";
    line_is_open_ = !line_is_open_;
    return line_is_open_ ? "" : "\n";
  }

  const std::vector<std::string>* symbols_;
  const SymbolRules* rules_;
  bool after_word_ = false;
  bool line_is_open_ = false;  // matters with double line tokens
};

bool Splits(SymbolSplit split, int32_t code_point) {
  return split == SymbolSplit::kSpace ? code_point == ' ' || code_point == '\n'
                                      : IsWhitespace(code_point);
}

}  // namespace

SymbolVocabulary::SymbolVocabulary(std::string kind,
                                   std::vector<std::string> symbols,
                                   SymbolRules rules)
    : kind_(std::move(kind)),
      symbols_(std::move(symbols)),
      rules_(std::move(rules)) {
  ids_.reserve(symbols_.size());
  for (size_t i = 0; i < symbols_.size(); ++i) {
    ids_.emplace(symbols_[i], static_cast<int32_t>(i));
  }
}

int64_t SymbolVocabulary::size() const {
  return static_cast<int64_t>(symbols_.size());
}

absl::StatusOr<std::vector<int32_t>> SymbolVocabulary::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  const std::string lowered = rules_.lower_case ? LowerCase(text) : "";
  absl::string_view rest = rules_.lower_case ? lowered : text;
  const Source source = {.text = rest};
  TokenList ids(options);
  while (!rest.empty()) {
    const size_t end =
        rules_.line_id ? rest.find('\n') : absl::string_view::npos;
    TXL_RETURN_IF_ERROR(AppendPieces(source, rest.substr(0, end), ids));
    if (end == absl::string_view::npos) break;
    TXL_RETURN_IF_ERROR(ids.Add(*rules_.line_id));
    if (rules_.double_line_tokens) {
      TXL_RETURN_IF_ERROR(ids.Add(*rules_.line_id));
    }
    rest.remove_prefix(end + 1);
  }
  return ids.Take();
}

absl::StatusOr<std::vector<int32_t>> SymbolVocabulary::EncodeDocument(
    absl::string_view text, const EncodeOptions& options) const {
  if (!rules_.strips_lines) return Encode(text, options);
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  TokenList ids(options);
  for (Source source; !text.empty(); ++source.line) {
    const absl::string_view line = TakeLine(text);
    const std::string lowered = rules_.lower_case ? LowerCase(line) : "";
    if (rules_.double_line_tokens) {
      TXL_RETURN_IF_ERROR(ids.Add(*rules_.line_id));
    }
    source.text = rules_.lower_case ? lowered : line;
    TXL_RETURN_IF_ERROR(AppendLine(source, StripWhitespace(source.text), ids));
    if (rules_.line_id) TXL_RETURN_IF_ERROR(ids.Add(*rules_.line_id));
  }
  return ids.Take();
}

absl::Status SymbolVocabulary::AppendLine(const Source& source,
                                          absl::string_view line,
                                          TokenList& ids) const {
  if (rules_.split != SymbolSplit::kSpace)
    return AppendPieces(source, line, ids);
  for (const absl::string_view piece : absl::StrSplit(line, ' ')) {
    TXL_RETURN_IF_ERROR(piece.empty() ? AppendUnknown(source, piece, ids)
                                      : AppendPiece(source, piece, ids));
  }
  return absl::OkStatus();
}

absl::Status SymbolVocabulary::AppendPieces(const Source& source,
                                            absl::string_view line,
                                            TokenList& ids) const {
  const bool by_character = rules_.split == SymbolSplit::kCharacters;
  size_t begin = 0;  // of the piece
  for (size_t at = 0; at < line.size();) {
    const Utf8Character next = FirstCharacter(line.substr(at));
    const size_t after = at + next.length;
    const bool splits = !by_character && Splits(rules_.split, next.code_point);
    if (by_character || splits) {
      const size_t end = by_character ? after : at;
      TXL_RETURN_IF_ERROR(
          AppendPiece(source, line.substr(begin, end - begin), ids));
      begin = after;
    }
    at = after;
  }
  return AppendPiece(source, line.substr(begin), ids);
}

absl::Status SymbolVocabulary::AppendPiece(const Source& source,
                                           absl::string_view piece,
                                           TokenList& ids) const {
  if (piece.empty()) return absl::OkStatus();
  if (rules_.space_id && piece == " ") {
    return ids.Add(*rules_.space_id);
  }
  if (const auto found = ids_.find(piece); found != ids_.end()) {
    return ids.Add(found->second);
  }
  if (rules_.space_id && piece == "\n") return absl::OkStatus();
  return AppendUnknown(source, piece, ids);
}

absl::Status SymbolVocabulary::AppendUnknown(const Source& source,
                                             absl::string_view piece,
                                             TokenList& ids) const {
  if (const auto added = ids.AddUnknown(piece)) return *added;
  if (!rules_.unknown_id) return NoSymbol(source, piece);
  return ids.Add(*rules_.unknown_id);
}

absl::Status SymbolVocabulary::NoSymbol(const Source& source,
                                        absl::string_view piece) {
  const absl::string_view shown = Utf8Prefix(piece, kMaxShownBytes);
  const absl::string_view before = source.text.substr(
      0, static_cast<size_t>(piece.data() - source.text.data()));
  const size_t line = before.rfind('\n') + 1;  // npos + 1 is 0
  return absl::InvalidArgumentError(absl::StrCat(
      "the vocabulary has no symbol for \"", absl::Utf8SafeCEscape(shown), "\"",
      shown.size() < piece.size() ? " (shortened)" : "", " in line ",
      source.line + std::count(before.begin(), before.end(), '\n'),
      ", character ", CodePoints(before.substr(line)) + 1));
}

std::unique_ptr<Detokenizer> SymbolVocabulary::NewDetokenizer() const {
  return std::make_unique<SymbolDetokenizer>(symbols_, rules_);
}

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
