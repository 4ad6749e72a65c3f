#pragma once

// A vocabulary as training code saved it, out of the data of a pickle or the
// text of a file. Pure functions: nothing is opened here.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

struct NativeVocabulary {
  std::vector<std::string> symbols;  // by id; may be ill-formed UTF-8
  // Attributes of a Vocab object, where there was one.
  std::optional<bool> lower_case;
  std::optional<std::string> delimiter;  // null (any whitespace): absent
  std::optional<int64_t> unknown_id;
  bool events = false;  // a dictionary of musical events
};

// Whether `data` is a checkpoint with a Vocab object as its "vocab".
bool HoldsVocabObject(const nlohmann::json& data);

// `data` (as in NativeCheckpoint.data) is one of
//   an object with the list "idx2sym" (a Vocab of any Transformer-XL code base
//     or the dictionary that its tokenizer saved) or "itos" (fastai);
//   an object whose "vocab" is such an object (a Corpus);
//   a pair (name -> id, id -> name) of dictionaries (music);
//   a dictionary name -> id, or a list of names.
// Errors: InvalidArgument saying what is wrong in which field: no such data, a
// symbol that is not a text, ids that are not 0..n-1.
absl::StatusOr<NativeVocabulary> VocabularyFromData(const nlohmann::json& data);

// One symbol a line: the first field between whitespace; a line of whitespace
// alone is that symbol. A symbol that was there before is skipped, without an
// id, as the original code does. Errors: InvalidArgument naming the line.
absl::StatusOr<NativeVocabulary> VocabularyFromLines(absl::string_view content);

struct RepairedSymbols {
  std::vector<std::string> symbols;  // distinct and valid UTF-8
  int64_t from_latin1 = 0;  // UTF-8 that had been read as latin-1, put right
  int64_t escaped = 0;      // ill-formed UTF-8, written as \xNN
};

// Symbols fit for a vocabulary file. UTF-8 read as latin-1 (as in the released
// vocabulary of WikiText-103) is put right symbol by symbol when more symbols
// can be than cannot; one that would then equal another stays as it is.
// Errors: InvalidArgument naming the id of an empty or repeated symbol.
absl::StatusOr<RepairedSymbols> RepairSymbols(
    const std::vector<std::string>& symbols);

}  // namespace txl
