#pragma once

// A subcommand of txl-model: its flags, and what it does after parsing.

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace txl {

struct Command {
  CLI::App* flags = nullptr;  // owned by the program's App
  std::function<absl::Status()> run;
};

// Each registers its subcommand with `app`; the flags' values live in `run`.
Command AddTrainCommand(CLI::App& app);
Command AddEvalCommand(CLI::App& app);
Command AddLogprobsCommand(CLI::App& app);
Command AddGenerateCommand(CLI::App& app);
Command AddRandomCommand(CLI::App& app);
Command AddInspectCommand(CLI::App& app);
Command AddConvertCommand(CLI::App& app);
Command AddNgramsCommand(CLI::App& app);
Command AddMidiCommand(CLI::App& app);

}  // namespace txl
