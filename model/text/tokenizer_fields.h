#pragma once

// tokenizer.json and the files that it names: reading and checking fields, for
// the loaders of the kinds (vocabulary_loader.h). Errors are InvalidArgument
// and name tokenizer.json and the field, or the vocabulary file.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/text/vocabulary.h"

namespace txl {

inline constexpr absl::string_view kTokenizerFile = "tokenizer.json";

// What these files may have. The largest published vocabulary, the 793,471
// words of the One Billion Word corpus, has 8 MiB.
inline constexpr int64_t kMaxTokenizerFileBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxVocabularyFileBytes = int64_t{64} << 20;

// What a loader of a kind gets.
struct TokenizerSource {
  nlohmann::json json;  // an object with a known "kind"
  std::filesystem::path directory;
  int64_t vocab_size = 0;
};

absl::Status TokenizerFieldError(absl::string_view field,
                                 absl::string_view problem);

// Every field of `json` is "kind" or in `known`.
absl::Status CheckFieldNames(const nlohmann::json& json,
                             std::initializer_list<absl::string_view> known);

// The value of "file": a name in the directory.
absl::StatusOr<std::string> FileName(const TokenizerSource& source);
// The content of the file that "file" names.
absl::StatusOr<std::string> FileContent(const TokenizerSource& source);

// The symbols in that file, vocab_size of them.
absl::StatusOr<std::vector<std::string>> FileSymbols(
    const TokenizerSource& source);
absl::Status CheckSymbolCount(const TokenizerSource& source, size_t count);

// An optional field of true or false.
absl::StatusOr<bool> BoolField(const nlohmann::json& json, const char* name,
                               bool fallback);

// The id of the symbol that the optional field names; absent or null: none.
absl::StatusOr<std::optional<int32_t>> SymbolField(
    const nlohmann::json& json, const char* name,
    const std::vector<std::string>& symbols);

// One loader per kind of vocabulary; vocabulary_loader.h has the fields of each
// kind. Each lives in load_KIND.cc.

using LoadedVocabulary = absl::StatusOr<std::unique_ptr<Vocabulary>>;

LoadedVocabulary LoadBytes(const TokenizerSource& source);
LoadedVocabulary LoadDecimalBytes(const TokenizerSource& source);
LoadedVocabulary LoadCharacters(const TokenizerSource& source);
LoadedVocabulary LoadSymbols(const TokenizerSource& source);
LoadedVocabulary LoadWikitext(const TokenizerSource& source);
LoadedVocabulary LoadSentencePiece(const TokenizerSource& source);
LoadedVocabulary LoadEvents(const TokenizerSource& source);
LoadedVocabulary LoadDigits(const TokenizerSource& source);

// Vocabulary files: the symbols of a vocabulary in the order of their ids.

// The symbols in the content of a file: a JSON array of strings when `name`
// ends in
// ".json", else one symbol a line (a line ends with "\n"; the last one may go
// without). Symbols are taken as they stand; they are not stripped.
// Errors: InvalidArgument opening with `name` and naming the line (or the
// array element; both counted from 1): an empty symbol, a symbol that was
// there before, a line that ends with "\r\n"; those of TextOfFile, which drops
// a byte order mark.
absl::StatusOr<std::vector<std::string>> ParseSymbolFile(
    absl::string_view file, absl::string_view name);

}  // namespace txl
