#pragma once

// Words cut out of plain text by the Moses rules, and text put together again:
// what Hugging Face's TransfoXL tokenizer did from late 2020 on, with line
// breaks on top.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/text/sentencepiece_cutter.h"
#include "model/text/vocabulary.h"

namespace txl {

struct WikitextRules {
  bool lower_case = false;
  std::optional<int32_t> unknown_id;  // for words that are not symbols
  // Stands for "\n". Absent: "\n" is whitespace.
  std::optional<int32_t> line_id;
  // Never cut open, and the text on each side of one is cut on its own. The
  // unknown symbol and the line token are special without being named.
  std::vector<std::string> special;
};

// Encode: text becomes lines, a line the text between special symbols; each is
// stripped, lowered where asked, its punctuation normalized, cut into words
// (moses_tokenizer.h) and its numbers cut open. Original differences that are
// kept: the text forgets its spacing and kinds of quotes, and what differs from
// a special symbol by case alone stays one word, though not that symbol.
// EncodeDocument gives the last line its token even without "\n".
//
// Decoding: moses_detokenizer.h line by line. A special symbol is a word.
class WikitextVocabulary final : public Vocabulary {
 public:
  // REQUIRES: as SymbolVocabulary; special symbols are not empty and have no
  // whitespace.
  WikitextVocabulary(std::vector<std::string> symbols, WikitextRules rules);
  WikitextVocabulary(const WikitextVocabulary&) = delete;
  WikitextVocabulary& operator=(const WikitextVocabulary&) = delete;

  using Vocabulary::Encode;
  using Vocabulary::EncodeDocument;
  int64_t size() const override;
  absl::string_view kind() const override { return "wikitext"; }
  bool has_unknown() const override { return rules_.unknown_id.has_value(); }
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const override;
  absl::StatusOr<std::vector<int32_t>> EncodeDocument(
      absl::string_view text, const EncodeOptions& options) const override;
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;

 private:
  class Cutter;

  std::string BytesOf(int32_t id) const override { return symbols_[id]; }

  // Appends the ids of words that stand in lines, each ended by one of `ends`:
  // a special symbol, "\n" for the line token, or nothing.
  absl::Status AppendWords(absl::Span<const std::string> words,
                           absl::Span<const absl::string_view> ends,
                           TokenList& ids) const;
  absl::Status AppendWord(absl::string_view word, TokenList& ids) const;

  const std::vector<std::string> symbols_;
  WikitextRules rules_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // into symbols_
  PieceIndex special_;
};

}  // namespace txl
