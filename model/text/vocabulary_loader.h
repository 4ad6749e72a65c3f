#pragma once

// A model directory's vocabulary.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/text/vocabulary.h"

namespace txl {

// Reads tokenizer.json of a model directory and the file it names:
//   {"kind": "bytes"}                              id = byte value, V = 256
//   {"kind": "characters", "file": "vocab.txt"}    one character per symbol
//   {"kind": "symbols", "file": "vocab.txt", "delimiter": null | "" | " ",
//    "lower_case": bool, "unknown": "<unk>" | null, "line_token": "<eos>"}
// A vocabulary file has one symbol a line, line number = id (JSON array of
// strings when the name ends in .json, so that "\n" can be a symbol).
// Errors: NotFound when there is no tokenizer.json (a model of ids only);
// InvalidArgument naming file and field.
absl::StatusOr<std::unique_ptr<Vocabulary>> LoadVocabulary(
    const std::string& model_directory, int64_t vocab_size);

}  // namespace txl
