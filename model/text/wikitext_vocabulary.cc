#include "model/text/wikitext_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/moses_detokenizer.h"
#include "model/text/moses_tokenizer.h"
#include "model/text/tokenizer_fields.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

class WikitextDetokenizer final : public Detokenizer {
 public:
  WikitextDetokenizer(const std::vector<std::string>& symbols,
                      std::optional<int32_t> line_id)
      : Detokenizer(static_cast<int64_t>(symbols.size())),
        symbols_(&symbols),
        line_id_(line_id) {}

  std::string Flush() override { return line_.Flush(); }

  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<WikitextDetokenizer>(*this);
  }

  std::string State() const override { return line_.State(); }

  bool SetState(absl::string_view state) override {
    return line_.SetState(state);
  }

 private:
  std::string AddKnown(int32_t id) override {
    if (line_id_ != id) return line_.Add((*symbols_)[id]);
    std::string out = line_.Flush();
    line_ = MosesDetokenizer();
    out += '\n';
    return out;
  }

  const std::vector<std::string>* symbols_;
  std::optional<int32_t> line_id_;
  MosesDetokenizer line_;
};

// Lines are cut this many bytes at a time: the rules cost as much for a short
// text as for hundreds of bytes, so that they must not run for each line.
constexpr size_t kBatchBytes = 16 * 1024;

WikitextRules WithOwnSymbols(WikitextRules rules,
                             const std::vector<std::string>& symbols) {
  for (const std::optional<int32_t> id : {rules.unknown_id, rules.line_id}) {
    if (id) rules.special.push_back(symbols[*id]);
  }
  std::sort(rules.special.begin(), rules.special.end());
  rules.special.erase(std::unique(rules.special.begin(), rules.special.end()),
                      rules.special.end());
  return rules;
}

PieceIndex IndexOf(const std::vector<std::string>& special) {
  std::vector<std::pair<std::string, int32_t>> entries;
  for (const std::string& symbol : special) entries.emplace_back(symbol, 0);
  return PieceIndex(std::move(entries));
}

}  // namespace

// Gathers text between special symbols and line ends, a line each, and gives it
// to the rules in batches.
class WikitextVocabulary::Cutter {
 public:
  Cutter(const WikitextVocabulary& vocabulary, const EncodeOptions& options)
      : vocabulary_(vocabulary), ids_(options) {}

  // A line that is ended by `end` (AppendWords); `line` outlives the cutter.
  absl::Status Add(absl::string_view line, absl::string_view end) {
    size_t begin = 0;
    for (size_t at = 0; at < line.size();) {
      const size_t size = vocabulary_.special_.LongestPrefix(line.substr(at));
      if (size == 0) {
        ++at;
        continue;
      }
      TXL_RETURN_IF_ERROR(
          AddPlain(line.substr(begin, at - begin), line.substr(at, size)));
      begin = at += size;
    }
    return AddPlain(line.substr(begin), end);
  }

  absl::StatusOr<std::vector<int32_t>> Finish() {
    TXL_RETURN_IF_ERROR(Cut());
    return ids_.Take();
  }

 private:
  absl::Status AddPlain(absl::string_view text, absl::string_view end) {
    text = StripWhitespace(text);
    const size_t old_size = lines_.size();
    absl::StrAppend(&lines_, text);
    // Where "\n" is no line end it is whitespace like any other.
    std::replace(lines_.begin() + static_cast<ptrdiff_t>(old_size),
                 lines_.end(), '\n', '\t');
    lines_ += '\n';
    ends_.push_back(end);
    return lines_.size() < kBatchBytes ? absl::OkStatus() : Cut();
  }

  absl::Status Cut() {
    const std::string normalized = NormalizeMosesPunctuation(
        vocabulary_.rules_.lower_case ? LowerCase(lines_) : lines_);
    TXL_RETURN_IF_ERROR(vocabulary_.AppendWords(
        SplitMosesNumbers(MosesWords(normalized, vocabulary_.rules_.special)),
        ends_, ids_));
    lines_.clear();
    ends_.clear();
    return absl::OkStatus();
  }

  const WikitextVocabulary& vocabulary_;
  TokenList ids_;
  std::string lines_;                    // each with "\n"
  std::vector<absl::string_view> ends_;  // of the lines
};

WikitextVocabulary::WikitextVocabulary(std::vector<std::string> symbols,
                                       WikitextRules rules)
    : symbols_(std::move(symbols)),
      rules_(WithOwnSymbols(std::move(rules), symbols_)),
      special_(IndexOf(rules_.special)) {
  ids_.reserve(symbols_.size());
  for (size_t i = 0; i < symbols_.size(); ++i) {
    ids_.emplace(symbols_[i], static_cast<int32_t>(i));
  }
}

int64_t WikitextVocabulary::size() const {
  return static_cast<int64_t>(symbols_.size());
}

absl::StatusOr<std::vector<int32_t>> WikitextVocabulary::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  Cutter cutter(*this, options);
  while (!text.empty()) {
    const size_t end =
        rules_.line_id ? text.find('\n') : absl::string_view::npos;
    if (end == absl::string_view::npos) {
      TXL_RETURN_IF_ERROR(cutter.Add(text, ""));
      break;
    }
    TXL_RETURN_IF_ERROR(cutter.Add(text.substr(0, end), text.substr(end, 1)));
    text.remove_prefix(end + 1);
  }
  return cutter.Finish();
}

absl::StatusOr<std::vector<int32_t>> WikitextVocabulary::EncodeDocument(
    absl::string_view text, const EncodeOptions& options) const {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  Cutter cutter(*this, options);
  while (!text.empty()) {
    TXL_RETURN_IF_ERROR(cutter.Add(TakeLine(text), rules_.line_id ? "\n" : ""));
  }
  return cutter.Finish();
}

absl::Status WikitextVocabulary::AppendWords(
    absl::Span<const std::string> words,
    absl::Span<const absl::string_view> ends, TokenList& ids) const {
  size_t line = 0;
  for (const std::string& word : words) {
    if (word != "\n") {
      TXL_RETURN_IF_ERROR(AppendWord(word, ids));
      continue;
    }
    // The rules keep every line; a special symbol is never empty.
    const absl::string_view end = line < ends.size() ? ends[line++] : "";
    if (end == "\n") {
      TXL_RETURN_IF_ERROR(ids.Add(*rules_.line_id));
    } else if (!end.empty()) {
      TXL_RETURN_IF_ERROR(AppendWord(end, ids));
    }
  }
  return absl::OkStatus();
}

absl::Status WikitextVocabulary::AppendWord(absl::string_view word,
                                            TokenList& ids) const {
  if (const auto found = ids_.find(word); found != ids_.end()) {
    return ids.Add(found->second);
  }
  if (const auto added = ids.AddUnknown(word)) return *added;
  if (rules_.unknown_id) return ids.Add(*rules_.unknown_id);
  return absl::InvalidArgumentError(
      absl::StrCat("the vocabulary has no symbol for \"",
                   absl::Utf8SafeCEscape(Utf8Prefix(word, 40)), "\""));
}

std::unique_ptr<Detokenizer> WikitextVocabulary::NewDetokenizer() const {
  return std::make_unique<WikitextDetokenizer>(symbols_, rules_.line_id);
}

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
