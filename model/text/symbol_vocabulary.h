#pragma once

// Vocabularies with a spelled symbol per id: words or characters.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/text/vocabulary.h"

namespace txl {

enum class SymbolSplit {
  kWhitespace,  // at any run of whitespace
  kSpace,       // at " " only
  kCharacters,  // every character is a symbol
};

// How text becomes symbols; fields as in tokenizer.json. The rules of the
// original code's Vocab (kimiyoung/transformer-xl, utils/vocabulary.py), but
// for streams: a line that has no "\n" yet gets no line token, empty pieces
// are dropped, and characters at the ends of a line are not stripped.
struct SymbolRules {
  SymbolSplit split = SymbolSplit::kWhitespace;
  bool lower_case = false;
  std::optional<int32_t> unknown_id;  // for pieces that are no symbol
  // Stands for "\n". Absent: "\n" is a character like others.
  std::optional<int32_t> line_id;
};

class SymbolVocabulary final : public Vocabulary {
 public:
  // REQUIRES: symbols are distinct and valid UTF-8; ids in `rules` are indices
  // of `symbols`.
  SymbolVocabulary(std::string kind, std::vector<std::string> symbols,
                   SymbolRules rules);
  SymbolVocabulary(const SymbolVocabulary&) = delete;
  SymbolVocabulary& operator=(const SymbolVocabulary&) = delete;

  int64_t size() const override;
  absl::string_view kind() const override { return kind_; }
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text) const override;
  std::string TokenBytes(int32_t id) const override { return symbols_[id]; }

  // Words are joined by one space, which comes with the word after it. No
  // space at the start of the text and next to a line break. The detokenizer
  // refers to this vocabulary.
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;

 private:
  absl::Status AppendPieces(absl::string_view line,
                            std::vector<int32_t>& ids) const;
  absl::Status AppendPiece(absl::string_view piece,
                           std::vector<int32_t>& ids) const;

  const std::string kind_;
  const std::vector<std::string> symbols_;
  const SymbolRules rules_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // into symbols_
};

}  // namespace txl
