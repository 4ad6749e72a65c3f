#pragma once

// How a SentencePiece model rewrites text before it cuts it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/text/sentencepiece_cutter.h"
#include "model/text/sentencepiece_model.h"

namespace txl {

// What stands for a space inside of pieces: U+2581.
inline constexpr absl::string_view kPieceSpace = "\xE2\x96\x81";

// A table of rewrites, longest match first. The file holds the size of a double
// array trie (32 bits), the trie (32 bits a unit, in the form of darts-clone)
// and the texts, each closed by a zero byte. All numbers little-endian.
class CharacterMap {
 public:
  // Empty content: no rewrites. Errors: InvalidArgument when it is damaged.
  static absl::StatusOr<CharacterMap> Parse(absl::string_view content);

  struct Match {
    size_t size = 0;  // bytes of the text that are rewritten; 0: none
    absl::string_view replacement;
  };
  Match LongestAt(absl::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string texts_;
};

class PieceNormalizer {
 public:
  // `user_defined`: pieces that are taken as they are. Both outlive the object.
  PieceNormalizer(const SentencePieceModel& model, CharacterMap map,
                  const PieceIndex& user_defined);

  // REQUIRES: text is valid UTF-8.
  std::string Normalize(absl::string_view text) const;

 private:
  // The rewritten start of `text` and how many bytes of it that is.
  CharacterMap::Match Next(absl::string_view text) const;

  const SentencePieceModel* model_;
  CharacterMap map_;
  const PieceIndex* user_defined_;
};

}  // namespace txl
