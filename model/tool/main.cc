// txl-model: offline work on models (docs/ARCHITECTURE.md).
// Exit status: 0 done, 1 failed, 2 usage, 130 after Ctrl-C.

#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <vector>

#include "model/tool/command.h"
#include "model/tool/progress_bar.h"
#include "program/command_line.h"

namespace txl {
namespace {

constexpr int kFailed = 1, kUsage = 2;

int Fail(absl::string_view message, int exit_code) {
  std::cerr << "txl-model: " << message << "\n";
  return exit_code;
}

int RunCommand(const Command& command) {
  absl::Status status;
  try {
    status = command.run();
  } catch (const c10::Error& error) {
    status = absl::InternalError(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  }
  if (!status.ok()) {
    return Fail(status.message(),
                WasInterrupted() ? kExitInterrupted : kFailed);
  }
  if (!std::cout.flush()) {
    return Fail("standard output cannot be written", kExitLostOutput);
  }
  return WasInterrupted() ? kExitInterrupted : 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Converts, inspects, evaluates and trains models.", "txl-model");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  SetUpProgram(app);
  app.set_help_all_flag("--help-all", "Print the help of every command");
  const std::vector<Command> commands = {
      AddTrainCommand(app),    AddEvalCommand(app),   AddLogprobsCommand(app),
      AddGenerateCommand(app), AddRandomCommand(app), AddInspectCommand(app),
      AddConvertCommand(app),  AddNgramsCommand(app), AddMidiCommand(app)};
  if (const std::optional<int> exit_code =
          ParseCommandLine(app, argc, argv, kUsage)) {
    return *exit_code;
  }
  for (const Command& command : commands) {
    if (command.flags->parsed()) return RunCommand(command);
  }
  return kUsage;
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) { return txl::Main(argc, argv); }
