#pragma once

// What a native vocabulary becomes in a model directory: the kind of its
// tokenizer.json and the tokens that generation starts with.

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/vocabulary/native_vocabulary.h"

namespace txl {

struct VocabularyKindRequest {
  absl::string_view family;  // id of family.h
  int64_t vocab_size = 0;
};

struct DescribedVocabulary {
  std::map<std::string, std::string> files;  // name -> content
  std::string notes;  // what was changed, for people; may be empty
};

// The kinds, first fit first:
//   events          a dictionary of musical events, or a family of music;
//                   generation starts with Bar_None (else the first Bar...)
//   decimal_bytes   all symbols are byte values 0..255 and one has two digits
//   characters      all symbols are single characters; those of text8 (a..z
//                   and "_") have "_" for the space
//   wikitext        of Hugging Face, when "@-@" is a symbol and words are not
//                   expressly parted otherwise
//   symbols         words; "<eos>" (else "<S>", on both sides) is the line
//                   token, and generation starts with it
// "<unk>" or "<UNK>" is the unknown symbol, or whichever the vocabulary names.
// Lower case: as the vocabulary says, else when no symbol outside <...> has an
// upper-case letter.
// Errors: InvalidArgument: symbols that RepairSymbols refuses, a number of
// symbols that is not vocab_size.
absl::StatusOr<DescribedVocabulary> DescribeVocabulary(
    const NativeVocabulary& vocabulary, const VocabularyKindRequest& request);

// Files of a model whose ids are digits.
DescribedVocabulary DescribeDigits();

// Files of a model with a SentencePiece model of the content `model`.
// Errors: InvalidArgument: `model` is not one, or has more pieces than
// vocab_size.
absl::StatusOr<DescribedVocabulary> DescribeSentencePiece(std::string model,
                                                          int64_t vocab_size);

}  // namespace txl
