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

// How text becomes symbols; fields as in tokenizer.json. The rules are those of
// the original code's Vocab (kimiyoung/transformer-xl, utils/vocabulary.py).
//
// Encode takes a piece of a stream: a line that has no "\n" yet gets no line
// token, empty pieces are dropped, and characters at the ends of a line are not
// stripped. EncodeDocument takes a whole file and does what the original does:
// "\r" and "\r\n" end lines too, every line is stripped and gets its line
// tokens (an empty one and a last one without "\n" as well), and with kSpace
// the nothing between two spaces is an unknown symbol. One difference is left:
// lower case is Unicode's simple mapping, not Python's full one.
struct SymbolRules {
  SymbolSplit split = SymbolSplit::kWhitespace;
  bool lower_case = false;
  std::optional<int32_t> unknown_id;  // for pieces that are not symbols
  // Stands for "\n". Absent: "\n" is a character like others.
  std::optional<int32_t> line_id;
  // The line token stands before and after each line, as in the models of the
  // One Billion Word corpus; in a stream "\n" is then two of them. Needs
  // line_id.
  bool double_line_tokens = false;
  // kCharacters: stands for " ". "\n" without a symbol is then dropped.
  std::optional<int32_t> space_id;
  // Whether EncodeDocument cuts into lines at all.
  bool strips_lines = false;
};

class SymbolVocabulary final : public Vocabulary {
 public:
  // REQUIRES: symbols are distinct and valid UTF-8; ids in `rules` are indices
  // of `symbols`.
  SymbolVocabulary(std::string kind, std::vector<std::string> symbols,
                   SymbolRules rules);
  SymbolVocabulary(const SymbolVocabulary&) = delete;
  SymbolVocabulary& operator=(const SymbolVocabulary&) = delete;

  using Vocabulary::Encode;
  using Vocabulary::EncodeDocument;
  int64_t size() const override;
  absl::string_view kind() const override { return kind_; }
  bool has_unknown() const override { return rules_.unknown_id.has_value(); }
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const override;
  absl::StatusOr<std::vector<int32_t>> EncodeDocument(
      absl::string_view text, const EncodeOptions& options) const override;
  // Words are joined by one space, which comes with the word after it. No
  // space at the start of the text and next to a line break. Of two line tokens
  // around a line break the first gives it. The detokenizer refers to this
  // vocabulary.
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;

 private:
  std::string BytesOf(int32_t id) const override { return symbols_[id]; }

  // What is being encoded, for errors.
  struct Source {
    absl::string_view text;  // holds what is appended
    int64_t line = 1;        // number of its first line
  };
  absl::Status AppendPieces(const Source& source, absl::string_view line,
                            TokenList& ids) const;
  // A stripped line of a document.
  absl::Status AppendLine(const Source& source, absl::string_view line,
                          TokenList& ids) const;
  absl::Status AppendPiece(const Source& source, absl::string_view piece,
                           TokenList& ids) const;
  // A piece that is not a symbol.
  absl::Status AppendUnknown(const Source& source, absl::string_view piece,
                             TokenList& ids) const;
  static absl::Status NoSymbol(const Source& source, absl::string_view piece);

  const std::string kind_;
  const std::vector<std::string> symbols_;
  const SymbolRules rules_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // into symbols_
};

}  // namespace txl
