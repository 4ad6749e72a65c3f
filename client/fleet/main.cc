// The program `txl-fleet-sim`: a fleet of servers in simulated time.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "client/fleet/flags.h"
#include "client/fleet/report.h"
#include "program/command_line.h"

namespace {

constexpr int kUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App program(
      "A fleet of txl-servers in simulated time, from measured costs.",
      "txl-fleet-sim");
  txl::SetUpProgram(program);
  txl::fleet::Flags flags;
  txl::fleet::AddFlags(program, &flags);
  if (const std::optional<int> exit_code =
          txl::ParseCommandLine(program, argc, argv, kUsage)) {
    return *exit_code;
  }
  absl::StatusOr<txl::fleet::FleetOptions> options =
      txl::fleet::MakeFleet(flags);
  absl::StatusOr<txl::fleet::FleetResult> result =
      options.ok() ? txl::fleet::SimulateFleet(*options) : options.status();
  if (!result.ok()) {
    std::fprintf(stderr, "txl-fleet-sim: %s\n",
                 std::string(result.status().message()).c_str());
    return kUsage;
  }
  if (flags.json) {
    std::cout << txl::fleet::ToJson(*result).dump() << "\n";
  } else {
    std::cout << txl::fleet::ToText(*result);
  }
  return std::cout.flush() ? 0 : txl::kExitLostOutput;
}
