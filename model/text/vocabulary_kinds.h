#pragma once

// One loader per kind of vocabulary; vocabulary_loader.h has the fields of each
// kind. Each lives in load_KIND.cc.

#include <memory>

#include "absl/status/statusor.h"
#include "model/text/tokenizer_fields.h"
#include "model/text/vocabulary.h"

namespace txl {

using LoadedVocabulary = absl::StatusOr<std::unique_ptr<Vocabulary>>;

LoadedVocabulary LoadBytes(const TokenizerSource& source);
LoadedVocabulary LoadDecimalBytes(const TokenizerSource& source);
LoadedVocabulary LoadCharacters(const TokenizerSource& source);
LoadedVocabulary LoadSymbols(const TokenizerSource& source);
LoadedVocabulary LoadWikitext(const TokenizerSource& source);
LoadedVocabulary LoadSentencePiece(const TokenizerSource& source);
LoadedVocabulary LoadEvents(const TokenizerSource& source);
LoadedVocabulary LoadDigits(const TokenizerSource& source);

}  // namespace txl
