#include "model/text/vocabulary_loader.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/text/tokenizer_fields.h"

namespace txl {
namespace {

struct Kind {
  absl::string_view name;
  LoadedVocabulary (*load)(const TokenizerSource&);
};

constexpr Kind kKinds[] = {
    {"bytes", LoadBytes},           {"decimal_bytes", LoadDecimalBytes},
    {"characters", LoadCharacters}, {"symbols", LoadSymbols},
    {"wikitext", LoadWikitext},     {"sentencepiece", LoadSentencePiece},
    {"events", LoadEvents},         {"digits", LoadDigits},
};

std::string KindNames() {
  return absl::StrJoin(kKinds, ", ", [](std::string* out, const Kind& kind) {
    absl::StrAppend(out, kind.name);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Vocabulary>> LoadVocabulary(
    const std::string& model_directory, int64_t vocab_size) {
  const std::filesystem::path directory(model_directory);
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadRegularFile(directory / std::string(kTokenizerFile),
                                       kMaxTokenizerFileBytes));
  TokenizerSource source{nlohmann::json::parse(text, nullptr, false), directory,
                         vocab_size};
  if (!source.json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTokenizerFile, ": is not a JSON object"));
  }
  const auto name = source.json.find("kind");
  for (const Kind& kind : kKinds) {
    if (name != source.json.end() && *name == std::string(kind.name)) {
      return kind.load(source);
    }
  }
  return TokenizerFieldError("kind",
                             absl::StrCat("must be one of ", KindNames()));
}

}  // namespace txl
