#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/digit_vocabulary.h"
#include "model/text/vocabulary_kinds.h"

namespace txl {

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
