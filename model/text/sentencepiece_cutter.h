#pragma once

// Normalized text cut into pieces of a SentencePiece model.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/text/sentencepiece_model.h"

namespace txl {

// Texts with ids, found at the start of a longer text.

class PieceIndex {
 public:
  // Texts are not empty and distinct, ids not negative.
  explicit PieceIndex(std::vector<std::pair<std::string, int32_t>> entries);

  // Calls visit(size, id) for every entry that `text` starts with, shortest
  // first. Takes time for the longest one, not for all of `text`.
  template <typename Visitor>
  void VisitPrefixes(absl::string_view text, Visitor visit) const {
    if (text.empty()) return;
    uint32_t node = first_[static_cast<unsigned char>(text[0])];
    for (size_t size = 1; node != 0; ++size) {
      if (nodes_[node].id >= 0) visit(size, nodes_[node].id);
      if (size == text.size()) return;
      node = Child(nodes_[node], text[size]);
    }
  }

  // Bytes of the longest entry that `text` starts with; 0: none.
  size_t LongestPrefix(absl::string_view text) const;

  // Bytes of the longest entry; 0: there is none.
  size_t longest() const { return longest_; }

 private:
  // Entries that share their first bytes.
  struct Node {
    int32_t id = -1;  // of the entry that ends here; -1: none
    // The nodes of one byte more, one after the other in the order of that
    // byte.
    uint32_t children = 0;
    uint16_t n_children = 0;
    unsigned char byte = 0;  // the last of those shared
  };

  // 0: none.
  uint32_t Child(const Node& node, char byte) const;

  std::vector<Node> nodes_;               // [0]: of no byte
  std::array<uint32_t, 256> first_ = {};  // nodes of one byte; 0: none
  size_t longest_ = 0;
};

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
