#include "model/text/wikitext_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/moses_detokenizer.h"
#include "model/text/moses_tokenizer.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

class WikitextDetokenizer final : public Detokenizer {
 public:
  WikitextDetokenizer(const std::vector<std::string>& symbols,
                      std::optional<int32_t> line_id)
      : symbols_(&symbols), line_id_(line_id) {}

  std::string Add(int32_t id) override {
    if (line_id_ != id) return line_.Add((*symbols_)[id]);
    std::string out = line_.Flush();
    line_ = MosesDetokenizer();
    out += '\n';
    return out;
  }

  std::string Flush() override { return line_.Flush(); }

  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<WikitextDetokenizer>(*this);
  }

 private:
  const std::vector<std::string>* symbols_;
  std::optional<int32_t> line_id_;
  MosesDetokenizer line_;
};

// Where a special symbol occurs first; the longest of those there.
struct Occurrence {
  size_t begin = absl::string_view::npos;
  size_t size = 0;
};

Occurrence FirstOccurrence(absl::string_view text,
                           const std::vector<std::string>& special) {
  Occurrence first;
  for (const std::string& symbol : special) {
    const size_t begin = text.find(symbol);
    if (begin < first.begin ||
        (begin == first.begin && symbol.size() > first.size &&
         begin != absl::string_view::npos)) {
      first = {begin, symbol.size()};
    }
  }
  return first;
}

}  // namespace

WikitextVocabulary::WikitextVocabulary(std::vector<std::string> symbols,
                                       WikitextRules rules)
    : symbols_(std::move(symbols)), rules_(std::move(rules)) {
  ids_.reserve(symbols_.size());
  for (size_t i = 0; i < symbols_.size(); ++i) {
    ids_.emplace(symbols_[i], static_cast<int32_t>(i));
  }
  for (const std::optional<int32_t> id : {rules_.unknown_id, rules_.line_id}) {
    if (id) rules_.special.push_back(symbols_[*id]);
  }
}

int64_t WikitextVocabulary::size() const {
  return static_cast<int64_t>(symbols_.size());
}

absl::StatusOr<std::vector<int32_t>> WikitextVocabulary::Encode(
    absl::string_view text, int64_t max_tokens) const {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  TokenList ids(max_tokens);
  while (!text.empty()) {
    const size_t end =
        rules_.line_id ? text.find('\n') : absl::string_view::npos;
    TXL_RETURN_IF_ERROR(AppendLine(text.substr(0, end), ids));
    if (end == absl::string_view::npos) break;
    TXL_RETURN_IF_ERROR(ids.Add(*rules_.line_id));
    text.remove_prefix(end + 1);
  }
  return ids.Take();
}

absl::StatusOr<std::vector<int32_t>> WikitextVocabulary::EncodeDocument(
    absl::string_view text) const {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  TokenList ids(kNoTokenLimit);
  while (!text.empty()) {
    TXL_RETURN_IF_ERROR(AppendLine(TakeLine(text), ids));
    if (rules_.line_id) TXL_RETURN_IF_ERROR(ids.Add(*rules_.line_id));
  }
  return ids.Take();
}

std::vector<std::string> WikitextVocabulary::Words(
    absl::string_view line) const {
  std::vector<std::string> words;
  while (!line.empty()) {
    const Occurrence next = FirstOccurrence(line, rules_.special);
    AppendPlain(line.substr(0, next.begin), words);
    if (next.begin == absl::string_view::npos) break;
    words.emplace_back(line.substr(next.begin, next.size));
    line.remove_prefix(next.begin + next.size);
  }
  return words;
}

void WikitextVocabulary::AppendPlain(absl::string_view text,
                                     std::vector<std::string>& words) const {
  text = StripWhitespace(text);
  if (text.empty()) return;
  const std::string normalized = NormalizeMosesPunctuation(
      rules_.lower_case ? LowerCase(text) : std::string(text));
  std::vector<std::string> cut =
      SplitMosesNumbers(MosesWords(normalized, rules_.special));
  std::move(cut.begin(), cut.end(), std::back_inserter(words));
}

absl::Status WikitextVocabulary::AppendLine(absl::string_view line,
                                            TokenList& ids) const {
  for (const std::string& word : Words(line)) {
    if (const auto found = ids_.find(word); found != ids_.end()) {
      TXL_RETURN_IF_ERROR(ids.Add(found->second));
    } else if (rules_.unknown_id) {
      TXL_RETURN_IF_ERROR(ids.Add(*rules_.unknown_id));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("the vocabulary has no symbol for \"",
                       absl::Utf8SafeCEscape(Utf8Prefix(word, 40)), "\""));
    }
  }
  return absl::OkStatus();
}

std::unique_ptr<Detokenizer> WikitextVocabulary::NewDetokenizer() const {
  return std::make_unique<WikitextDetokenizer>(symbols_, rules_.line_id);
}

}  // namespace txl
