#pragma once

// A text as token ids, cut into a training part and a held-out end.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

enum class CorpusVocabulary {
  kBytes,       // id = byte value, 256 ids
  kCharacters,  // the text's distinct characters in code point order
};

struct Corpus {
  CorpusVocabulary kind = CorpusVocabulary::kCharacters;
  std::vector<std::string> symbols;  // characters only; index = id
  std::vector<int64_t> train;
  std::vector<int64_t> held_out;
  int64_t vocab_size() const {
    return kind == CorpusVocabulary::kBytes
               ? 256
               : static_cast<int64_t>(symbols.size());
  }
};

// The last `held_out_share` (in [0, 1)) of the tokens is held out.
// Errors: InvalidArgument (empty text, invalid UTF-8 for characters, a share
// out of range).
absl::StatusOr<Corpus> MakeCorpus(absl::string_view text, CorpusVocabulary kind,
                                  double held_out_share);

// Index of the first held-out token of `count` tokens.
int64_t HeldOutBegin(int64_t count, double held_out_share);

// Whole file. Errors: NotFound.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace txl
