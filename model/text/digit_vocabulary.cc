#include "model/text/digit_vocabulary.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/tokenizer_fields.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

class DigitDetokenizer final : public Detokenizer {
 public:
  using Detokenizer::Detokenizer;
  std::string Flush() override { return ""; }
  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<DigitDetokenizer>(*this);
  }
  std::string State() const override { return after_digit_ ? "1" : ""; }
  bool SetState(absl::string_view state) override {
    after_digit_ = !state.empty();
    return state == State();
  }

 private:
  std::string AddKnown(int32_t id) override {
    return absl::StrCat(std::exchange(after_digit_, true) ? " " : "", id);
  }

  bool after_digit_ = false;
};

}  // namespace

absl::StatusOr<std::vector<int32_t>> DigitVocabulary::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  TokenList ids(options);
  while (!text.empty()) {
    const Utf8Character next = FirstCharacter(text);
    const absl::string_view piece = text.substr(0, next.length);
    const int32_t digit = next.code_point - '0';
    if (digit >= 0 && digit < size_) {
      TXL_RETURN_IF_ERROR(ids.Add(digit));
    } else if (!IsWhitespace(next.code_point)) {
      const std::optional<absl::Status> added = ids.AddUnknown(piece);
      if (!added) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", absl::Utf8SafeCEscape(piece),
                         "\" is not a digit from 0 to ", size_ - 1));
      }
      TXL_RETURN_IF_ERROR(*added);
    }
    text.remove_prefix(next.length);
  }
  return ids.Take();
}

std::string DigitVocabulary::BytesOf(int32_t id) const {
  return absl::StrCat(id);
}

std::unique_ptr<Detokenizer> DigitVocabulary::NewDetokenizer() const {
  return std::make_unique<DigitDetokenizer>(size_);
}

LoadedVocabulary LoadDigits(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(source.json, {}));
  if (source.vocab_size < 1 || source.vocab_size > 10) {
    return TokenizerFieldError(
        "kind", absl::StrCat("digits has at most 10 ids, the model's "
                             "vocab_size is ",
                             source.vocab_size));
  }
  return std::make_unique<DigitVocabulary>(source.vocab_size);
}

}  // namespace txl
