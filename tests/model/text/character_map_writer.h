#pragma once

// The table of rewrites of a SentencePiece model, in the form of its file
// (model/text/sentencepiece_normalizer.h).

#include <map>
#include <string>

namespace txl {

// REQUIRES: not empty; keys are not empty and hold no zero byte, the table
// stays small.
std::string CharacterMapBytes(const std::map<std::string, std::string>& rules);

}  // namespace txl
