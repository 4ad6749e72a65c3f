#pragma once

// tokenizer.json and the files that it names: reading and checking fields, for
// the loaders of the kinds (vocabulary_kinds.h). Errors are InvalidArgument and
// name tokenizer.json and the field, or the vocabulary file.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

}  // namespace txl
