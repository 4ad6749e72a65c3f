// txl-model: offline work on models (docs/ARCHITECTURE.md, "Programs").
// Exit status: 0 done, 1 failed, 2 usage.

#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <vector>

#include "model/tool/command.h"

namespace txl {
namespace {

constexpr int kFailed = 1, kUsage = 2;

int RunCommand(const Command& command) {
  absl::Status status;
  try {
    status = command.run();
  } catch (const c10::Error& error) {
    status = absl::InternalError(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  }
  if (status.ok()) return 0;
  std::cerr << "txl-model: " << status.message() << "\n";
  return kFailed;
}

int Main(int argc, char** argv) {
  CLI::App app("Works on Transformer-XL models without a server.", "txl-model");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  const std::vector<Command> commands = {
      AddTrainCommand(app),    AddEvalCommand(app),   AddLogprobsCommand(app),
      AddGenerateCommand(app), AddRandomCommand(app), AddInspectCommand(app),
      AddConvertCommand(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  for (const Command& command : commands) {
    if (command.flags->parsed()) return RunCommand(command);
  }
  return kUsage;
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) { return txl::Main(argc, argv); }
