#pragma once

// The grammar of a family of music as kinds of tokens
// (model/sampling/token_kinds.h).

#include <vector>

#include "model/sampling/token_kinds.h"
#include "model/text/vocabulary.h"

namespace txl {

// Which kinds of events follow which in the ids that MidiEncoder makes; with
// musicautobot also as its predict() has it, which draws durations behind notes
// and separators only. Events of no kind (masks, classes) are never in a piece.
// Empty: the vocabulary isn't one of music.
std::vector<TokenKind> KindsOfMusic(const Vocabulary& vocabulary);

}  // namespace txl
