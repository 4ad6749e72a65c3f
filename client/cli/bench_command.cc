// txl bench: a load test.

#include <CLI/CLI.hpp>

#include "client/bench/load.h"
#include "client/bench/report.h"
#include "client/cli/command.h"
#include "client/cli/interrupt.h"
#include "client/cli/output.h"

namespace txl::cli {
namespace {

struct Flags {
  ServerFlags server;
  bench::LoadOptions load;
  bool json = false;
};

int Bench(const Flags& flags) {
  bench::LoadOptions options = flags.load;
  options.channel = flags.server.channel;
  const absl::Status address = ValidateAddress(options.channel.address);
  if (!address.ok()) return FailUsage(std::string(address.message()));
  Canceller canceller;
  CancelOnInterrupt watch(&canceller);
  const absl::StatusOr<bench::LoadResult> result =
      bench::RunLoad(options, &canceller);
  if (!result.ok()) return Fail(result.status());
  const bench::Report report = bench::MakeReport(*result);
  WriteOut(flags.json ? bench::ToJsonLine(report) : bench::ToText(report));
  if (!report.problems.empty()) {
    return Fail(absl::InternalError("a stream broke the rules of the API"));
  }
  if (report.end_to_end.count == 0) {
    return Fail(absl::UnavailableError("no request ended well"));
  }
  return kDone;
}

}  // namespace

void AddBenchCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "bench", "Load test: concurrent streams in a closed loop");
  auto flags = std::make_shared<Flags>();
  bench::LoadOptions& load = flags->load;
  AddServerFlags(*command, &flags->server);
  command->add_option("--streams", load.streams, "concurrent streams")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command
      ->add_option("--connections", load.connections,
                   "connections, 0: one for each 50 streams")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  command
      ->add_option("--prompt-tokens", load.prompt_tokens,
                   "random token ids before each turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--max-tokens", load.max_tokens, "tokens of each turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI::Option* requests = command
                              ->add_option("--requests", load.requests,
                                           "turns in all, 0: as --seconds says")
                              ->check(CLI::NonNegativeNumber)
                              ->capture_default_str();
  command
      ->add_option("--seconds", load.seconds,
                   "time in which turns start, 0: 10, or as --requests says")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->excludes(requests);
  command
      ->add_option("--temperature", load.temperature,
                   "of the sampling, 0: greedy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--seed", load.seed, "of prompts and draws: repeats a run")
      ->capture_default_str();
  command->add_flag("--json", flags->json,
                    "print the result as a line of JSON [default: off]");
  command->callback([run, flags] { *run = [flags] { return Bench(*flags); }; });
}

}  // namespace txl::cli
