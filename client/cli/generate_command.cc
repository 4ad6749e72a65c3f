// txl generate: one turn, streamed to standard output.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/generate_flags.h"
#include "client/cli/interrupt.h"
#include "client/cli/output.h"
#include "client/cli/turn_printer.h"
#include "client/retrying_client.h"

namespace txl::cli {
namespace {

struct Flags {
  ServerFlags server;
  GenerateFlags turn;
  std::string print = "text";
  bool json = false;
};

int RunTurn(Client& client, const Flags& flags,
            const v1::GenerateRequest& request) {
  PrintMode mode =
      flags.print == "tokens" ? PrintMode::kTokens : PrintMode::kText;
  if (flags.json) mode = PrintMode::kJson;
  Canceller canceller;
  CancelOnInterrupt watch(&canceller);
  TurnPrinter printer(mode, request.output().has_logprobs());
  const absl::Status status =
      RetryingClient(&client, flags.server.retry_policy())
          .Generate(request, flags.server.call_options(&canceller),
                    [&](const v1::GenerateResponse& response) {
                      if (!WriteOut(printer.Format(response)))
                        canceller.Cancel();
                    });
  WriteOut(printer.End());
  if (!status.ok()) return Fail(status);
  if (printer.silent()) {
    std::fprintf(stderr,
                 "txl: the turn has no text; --print tokens shows its ids\n");
  }
  return kDone;
}

int Generate(Flags flags) {
  if (flags.turn.prompt == "-" && !ReadInput("-", &*flags.turn.prompt)) {
    return Fail(absl::DataLossError("standard input cannot be read"));
  }
  const absl::StatusOr<v1::GenerateRequest> request =
      MakeGenerateRequest(flags.turn);
  if (!request.ok()) return FailUsage(std::string(request.status().message()));
  return WithClient(flags.server, [&](Client& client) {
    return RunTurn(client, flags, *request);
  });
}

}  // namespace

void AddGenerateCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "generate", "Generate text and stream it to standard output");
  auto flags = std::make_shared<Flags>();
  AddServerFlags(*command, &flags->server);
  AddRetryFlags(*command, &flags->server);
  AddPromptFlags(*command, &flags->turn);
  AddSamplingFlags(*command, &flags->turn);
  AddOutputFlags(*command, &flags->turn);
  command->add_option("--print", flags->print, "text or tokens (ids)")
      ->check(CLI::IsMember({"text", "tokens"}))
      ->capture_default_str();
  command->add_flag("--json", flags->json,
                    "print every response as a line of JSON [default: off]");
  command->callback(
      [run, flags] { *run = [flags] { return Generate(*flags); }; });
}

}  // namespace txl::cli
