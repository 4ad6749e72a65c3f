#pragma once

// English text cut into words by the rules of the Moses scripts
// (normalize-punctuation.perl and tokenizer.perl, in the form of their Python
// ports of 2020 to 2022), as the Transformer-XL models of WikiText-103 were
// fed: dashes and numbers are cut open ("3,000.5" is "3 @,@ 000 @.@ 5"),
// nothing is escaped.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace txl {

// Text may hold many lines, parted by "\n"; each is worked on as if it were
// alone. All of this takes time in proportion to the bytes of the text.

// Plain ASCII quotes, dashes and ellipses, and tidy spaces (but for those at
// the ends of lines). REQUIRES: text is valid UTF-8.
std::string NormalizeMosesPunctuation(absl::string_view text);

// The words of normalized text, cut by tokenizer.perl's rules with aggressive
// dash splits; each "\n" is a word of its own. Occurrences of a
// `protected_words` entry, ASCII case ignored as in the Python port, are not
// cut open. REQUIRES: all is valid UTF-8; a protected word is not empty and has
// no whitespace.
std::vector<std::string> MosesWords(
    absl::string_view text, absl::Span<const std::string> protected_words);

// Words with "," and "." between digits cut out as "@,@" and "@.@".
std::vector<std::string> SplitMosesNumbers(std::vector<std::string> words);

}  // namespace txl
