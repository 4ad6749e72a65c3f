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
  // A plain text that is not refused, also when it is repeated; of more than
  // eight ids.
  std::string text =
      "But, soft! what light through yonder window breaks? It is the east, and "
      "Juliet's the sun.\n";
};

std::vector<NamedVocabulary> EveryVocabulary();

}  // namespace txl
