#pragma once

// The vocabulary of a converted model: found inside the checkpoint, beside it,
// or where the user says, and written as files of a model directory.

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

struct VocabularyRequest {
  absl::string_view family;  // id of family.h
  const NativeCheckpoint& checkpoint;
  // --tokenizer: a file, or a folder with one of the files below. "none": no
  // vocabulary. Empty: look inside the checkpoint and beside it.
  std::string tokenizer_path;
  int64_t vocab_size = 0;
};

struct VocabularyFiles {
  // Name in the model directory -> content: tokenizer.json, its file,
  // generation.json, and kinds.json of music. Empty: none found, the model is
  // served with ids only.
  std::map<std::string, std::string> files;
  std::string source;  // where it was found, for people
};

// The places, first one found: the checkpoint's own Vocab object; for the
// sorter its digits; in the folder of the checkpoint tokenizer.json (of ours),
// dictionary.pkl, vocab.pkl, vocab.bin, vocab.json, vocab.txt, cache.pt,
// cache.pkl, spiece.model, or a single other *.model of SentencePiece.
// vocabulary_kind.h says what becomes of it.
// Errors: InvalidArgument naming the file or place: it cannot be read, its size
// is not vocab_size. A vocabulary that was not asked for and is not there is no
// error.
absl::StatusOr<VocabularyFiles> FindVocabulary(
    const VocabularyRequest& request);

}  // namespace txl
