// The program `txl`: a client of txl-server.

#include <CLI/CLI.hpp>

#include "absl/synchronization/mutex.h"
#include "client/cli/command.h"
#include "client/cli/output.h"
#include "program/command_line.h"

int main(int argc, char** argv) {
#ifdef NDEBUG
  // At every lock, gRPC's too, where Abseil was built without NDEBUG (Debian).
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  CLI::App program("Client of txl-server: text, scores, sessions, load.",
                   "txl");
  program.require_subcommand(1);
  txl::SetUpProgram(program);
  program.set_help_all_flag("--help-all", "Print the help of every command");
  txl::cli::Run run;
  txl::cli::AddGenerateCommand(program, &run);
  txl::cli::AddChatCommand(program, &run);
  txl::cli::AddScoreCommand(program, &run);
  txl::cli::AddTokenizeCommand(program, &run);
  txl::cli::AddSessionsCommand(program, &run);
  txl::cli::AddStatusCommand(program, &run);
  txl::cli::AddBenchCommand(program, &run);
  txl::cli::AddAdminCommand(program, &run);
  if (const std::optional<int> exit_code =
          txl::ParseCommandLine(program, argc, argv, txl::cli::kUsage)) {
    return *exit_code;
  }
  const int exit_code = run();
  const absl::Status written = txl::cli::OutputStatus();
  return written.ok() ? exit_code : txl::cli::Fail(written);
}
