#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/sentencepiece_model.h"
#include "model/text/sentencepiece_vocabulary.h"
#include "model/text/vocabulary_kinds.h"

namespace txl {

LoadedVocabulary LoadSentencePiece(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(source.json, {"file"}));
  TXL_ASSIGN_OR_RETURN(const std::string name, FileName(source));
  TXL_ASSIGN_OR_RETURN(const std::string content, FileContent(source));
  absl::StatusOr<SentencePieceModel> model = ParseSentencePieceModel(content);
  if (!model.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", model.status().message()));
  }
  if (static_cast<int64_t>(model->pieces.size()) > source.vocab_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", model->pieces.size(),
                     " pieces, the model's vocab_size is ", source.vocab_size));
  }
  LoadedVocabulary vocabulary =
      SentencePieceVocabulary::Create(*std::move(model), source.vocab_size);
  if (vocabulary.ok()) return vocabulary;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", vocabulary.status().message()));
}

}  // namespace txl
