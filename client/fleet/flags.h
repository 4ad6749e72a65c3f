#pragma once

// The command line of txl-fleet-sim, and the file that may stand for it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/fleet/fleet.h"

namespace CLI {
class App;
}

namespace txl::fleet {

// Of the whole fleet where nothing else is said; defaults are the plan of
// docs/scaling.md.
struct Flags {
  int32_t servers = 1000;
  int64_t sessions = 100'000'000;
  int32_t cells = 20;
  int32_t sample = 0;  // 0: all cells
  std::vector<std::string> steps = {"1:0.00101", "8:0.00123", "32:0.0018",
                                    "128:0.00324", "512:0.01025"};
  double conversations = 350;
  std::string turns = "20";
  std::string think_seconds = "exponential:30";
  std::string prompt_tokens = "200";
  std::string answer_tokens = "200";
  std::string session_tokens = "4000";
  int64_t warm_conversations = 10'000'000;
  std::vector<std::string> failures;  // AT:SERVERS:FOR[:silent]
  bool json = false;
  // What has one number for every cell and server.
  SharedImages images;
  ShardOptions store;
  Recovery recovery;
  double prompt_row_seconds = 15.5e-6;
  double prompt_rows_per_step = 512;
  double rebuild_rows = 28'801;
  int32_t slots = 2000;
  int64_t local_images = 10'000;
  double local_read_seconds = 0.012;
  double zipf_exponent = 0.8;
  double warmup_seconds = 900;
  double seconds = 600;
  uint64_t seed = 1;

  Flags();
};

void AddFlags(CLI::App& program, Flags* flags);

// Errors: InvalidArgument naming the flag.
absl::StatusOr<FleetOptions> MakeFleet(const Flags& flags);

}  // namespace txl::fleet
