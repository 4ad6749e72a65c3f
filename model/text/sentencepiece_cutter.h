#pragma once

// Normalized text cut into pieces of a SentencePiece model.

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/text/piece_index.h"
#include "model/text/sentencepiece_model.h"

namespace txl {

class PieceCutter {
 public:
  struct Cut {
    absl::string_view text;
    int32_t id = 0;  // the unknown piece's where no piece fits
  };

  // Refers to the model.
  explicit PieceCutter(const SentencePieceModel& model);

  // Takes the next cut, a view of the text; an error ends the work.
  using Taker = absl::FunctionRef<absl::Status(const Cut&)>;

  // Gives the pieces that make up `text`, from its start to its end. They are
  // given while the work goes on, wherever no piece of the model lies across a
  // place of the text: what is to be cut at once stays small, and work that is
  // not wanted any more ends early. The first error of `take`, if any.
  // REQUIRES: text is valid UTF-8.
  absl::Status CutUp(absl::string_view text, Taker take) const;

  // Id of a piece that stands for text of its own, -1 when there is none.
  int32_t Find(absl::string_view text) const;

  const PieceIndex& user_defined() const { return user_defined_; }

 private:
  // The cuts with the largest sum of scores (Kudo, 2018).
  absl::Status Unigram(absl::string_view text, Taker take) const;
  // Pairs joined in the order of their scores (Sennrich et al., 2016).
  absl::Status Bpe(absl::string_view text, Taker take) const;

  const SentencePieceModel* model_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;
  PieceIndex index_;         // of pieces that text can be cut into
  PieceIndex user_defined_;  // of those always cut out whole
  float min_score_ = 0;      // of normal pieces
};

}  // namespace txl
