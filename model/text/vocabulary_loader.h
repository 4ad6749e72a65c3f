#pragma once

// A model directory's vocabulary.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/text/vocabulary.h"

namespace txl {

// Reads tokenizer.json of a model directory and the file it names. Fields that
// are not marked as needed may be left out; their default comes first.
//   {"kind": "bytes"}                              id = byte value, V = 256
//   {"kind": "decimal_bytes", "file": "vocab.txt"}
//     Symbols are decimal byte values ("32"). Line breaks are dropped when 10
//     is not a symbol.
//   {"kind": "characters", "file": "vocab.txt", "lower_case": false,
//    "space": null | "_"}
//     One character per symbol. "space": the symbol that stands for " ", as in
//     text8; "\n" is then dropped when it is not a symbol.
//   {"kind": "symbols", "file": "vocab.txt", "delimiter": null | "" | " ",
//    "lower_case": false, "unknown": null | "<unk>",
//    "line_token": null | "<eos>", "double_line_tokens": false}
//     Words (null: split at any whitespace) or characters (""); SymbolRules in
//     symbol_vocabulary.h has the rules.
//   {"kind": "wikitext", "file": "vocab.txt", "lower_case": false,
//    "unknown": null | "<unk>", "line_token": null | "<eos>",
//    "special": [] | ["<formula>"]}
//     Words cut out of plain text by the Moses rules, wikitext_vocabulary.h.
//   {"kind": "sentencepiece", "file": "spiece.model"}
//     A SentencePiece model; it may have fewer pieces than the model has ids.
//   {"kind": "events", "file": "events.json"}
//     Names of events, in text parted by whitespace; inside a name whitespace
//     and "%" are written %XX by bytes ("Note On" is Note%20On).
//   {"kind": "digits"}        ids are digits, V <= 10; "3 1 4" or "314"
// "file" is needed where it stands. Vocabulary files have one symbol a line,
// line number = id (a JSON array of strings when the name ends in .json, so
// that "\n" can be a symbol), and 64 MiB at most; tokenizer.json has 1 MiB at
// most.
// Errors: NotFound when there is no tokenizer.json (a model of ids only);
// InvalidArgument naming file and field, also for what is not a regular file.
absl::StatusOr<std::unique_ptr<Vocabulary>> LoadVocabulary(
    const std::string& model_directory, int64_t vocab_size);

}  // namespace txl
