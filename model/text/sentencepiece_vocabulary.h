#pragma once

// A SentencePiece model as a vocabulary.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/text/sentencepiece_cutter.h"
#include "model/text/sentencepiece_model.h"
#include "model/text/sentencepiece_normalizer.h"
#include "model/text/vocabulary.h"

namespace txl {

// Encoding and decoding equal the original library's, with one difference: of
// pieces that are bytes, each ill-formed part becomes one U+FFFD, not one per
// byte. Most models turn line breaks into spaces when they normalize.
class SentencePieceVocabulary final : public Vocabulary {
 public:
  // `size` >= number of pieces: ids above have no text. Errors: InvalidArgument
  // when the model's table of characters is damaged.
  static absl::StatusOr<std::unique_ptr<Vocabulary>> Create(
      SentencePieceModel model, int64_t size);

  using Vocabulary::Encode;
  int64_t size() const override { return size_; }
  absl::string_view kind() const override { return "sentencepiece"; }
  bool has_unknown() const override { return true; }
  // Control pieces are never found in text; characters without a piece are
  // bytes, of which none is unknown, or together one unknown piece.
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const override;
  // The space that opens the first piece of the text is dropped where encoding
  // put it there. Refers to this vocabulary.
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;

 private:
  SentencePieceVocabulary(SentencePieceModel model, int64_t size,
                          CharacterMap map);
  std::string BytesOf(int32_t id) const override;
  // A character without a piece. REQUIRES: the model has pieces for bytes.
  absl::Status AddBytes(absl::string_view text, TokenList& ids) const;

  const SentencePieceModel model_;
  const int64_t size_;
  const PieceCutter cutter_;
  const PieceNormalizer normalizer_;
  std::vector<int32_t> byte_ids_;  // 256, or none
};

}  // namespace txl
