#pragma once

// A small vocabulary of every kind, and of every rule that a kind has, built
// without files.

#include <memory>
#include <string>
#include <vector>

#include "model/text/vocabulary.h"

namespace txl {

struct NamedVocabulary {
  std::string name;
  std::unique_ptr<Vocabulary> vocabulary;
  // What Encode refuses in valid UTF-8: text without a symbol.
  bool knows_all_text = false;
  // Decode(Encode(text)) == text, of text that is not refused.
  bool comes_back = false;
  // A text that is not refused, of more than eight ids.
  std::string text = "but soft! what light through yonder window breaks\n";
};

std::vector<NamedVocabulary> EveryVocabulary();

}  // namespace txl
