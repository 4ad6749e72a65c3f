#pragma once

// The flags of `txl bench`, and the load that they describe.
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/plan/capacity_search.h"
#include "client/bench/plan/workload.h"
#include "client/bench/run/load.h"
#include "client/cli/command.h"

namespace CLI {
class App;
}

namespace txl::cli {
// Defaults are those of bench::LoadOptions.
struct BenchFlags {
  BenchFlags();

  ServerFlags server;
  bench::LoadOptions load;
  double rate = 0;       // open loop; 0: closed
  std::string arrivals;  // "poisson" or "constant"
  // Distributions.
  std::string prompt_tokens;
  std::string max_tokens;
  std::string turns;
  std::string think_seconds;
  std::string prompts_file;         // empty: none
  std::vector<std::string> limits;  // NAME=DURATION

  // Several runs: at these rates, or a search that begins at `rate`.
  std::vector<double> rates;
  bool find_capacity = false;
  double good_share = 0.99;
  bench::CapacitySearch search;

  bool json = false;
  bool progress = false;
  std::string out_file;  // of JSON; empty: none
};

void AddBenchFlags(CLI::App& command, BenchFlags* flags);

struct BenchPlan {
  bench::LoadOptions load;
  bench::Limits limits;
  std::vector<double> rates;  // not empty: one run at each
  std::optional<bench::CapacitySearch> search;
};

// Errors: InvalidArgument naming the flag; NotFound for a file that cannot be
// read.
absl::StatusOr<BenchPlan> MakeBenchPlan(const BenchFlags& flags);

}  // namespace txl::cli
