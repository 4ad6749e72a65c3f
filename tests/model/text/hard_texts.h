#pragma once

// Texts that cost a tokenizer more than plain ones may, repeated to a length.

#include <cstddef>
#include <string>
#include <vector>

namespace txl {

// `pattern` as often as it goes into `bytes`.
std::string Repeated(const std::string& pattern, size_t bytes);

// Patterns: special symbols and their beginnings, characters without words and
// words without spaces, every kind of punctuation, line ends, spaces,
// characters that normalization makes longer or drops, prefixes of the longest
// pieces of every_vocabulary.h.
std::vector<std::string> HardPatterns();

}  // namespace txl
