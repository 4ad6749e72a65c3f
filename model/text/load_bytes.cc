#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/byte_vocabulary.h"
#include "model/text/vocabulary_kinds.h"

namespace txl {

LoadedVocabulary LoadBytes(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(source.json, {}));
  if (source.vocab_size != ByteVocabulary::kSize) {
    return TokenizerFieldError(
        "kind",
        absl::StrCat("bytes has ", ByteVocabulary::kSize,
                     " ids, the model's vocab_size is ", source.vocab_size));
  }
  return std::make_unique<ByteVocabulary>();
}

}  // namespace txl
