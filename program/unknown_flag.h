#pragma once

// --unknown, of the commands that make tokens of text: what becomes of pieces
// that the vocabulary has no symbol for.

#include <CLI/CLI.hpp>
#include <string>

namespace txl {

inline constexpr char kSkipUnknown[] = "skip";  // they are left out
inline constexpr char kUnknownSymbol[] = "unk";

// One of these words comes into `word`, which stays as it is without the flag.
void AddUnknownFlag(CLI::App& command, std::string* word);

}  // namespace txl
