#pragma once

// The command lines of the project's programs: what all of them understand, and
// how they say that something is wrong.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace txl {

inline constexpr int kExitLostOutput = 1;
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells say it

// Before commands and flags are added: readable help, --version, --completion
// SHELL, and --man-page, which --help does not list. Where one of them stands
// CLI11's parse throws CLI::CallForVersion with the text.
void SetUpProgram(CLI::App& program);

// Has only the command that was called read its environment variables. CLI11
// otherwise gives them to the options of every command, which check them and,
// where commands share their targets, overwrite what the command line says.
// Before commands are added. It works for commands that have a callback.
// SetUpProgram does it.
void ReadOwnVariables(CLI::App& program);

// What was wrong, after program.parse threw `error`: words that no command has
// in their order, a misspelt one with its nearest, a flag that is given twice,
// the variable that a value is of. One line, without the program's name.
std::string UsageError(const CLI::App& program, const CLI::ParseError& error);

// Has the numbers of all flags read as flag_checks.h says. Once, after they
// were added.
void ReadPlainNumbers(CLI::App& command);

// Parses, with ReadPlainNumbers. Absent: go on. Else the program's exit code: 0
// when help or another text was asked for, which then is on standard output, or
// kExitLostOutput where that takes none; `usage_exit` for a wrong command line,
// which standard error then explains.
std::optional<int> ParseCommandLine(CLI::App& program, int argc, char** argv,
                                    int usage_exit);

// --unknown, of the commands that make tokens of text: what becomes of pieces
// that the vocabulary has no symbol for.

inline constexpr char kSkipUnknown[] = "skip";  // they are left out
inline constexpr char kUnknownSymbol[] = "unk";

// One of these words comes into `word`, which stays as it is without the flag.
void AddUnknownFlag(CLI::App& command, std::string* word);

}  // namespace txl
