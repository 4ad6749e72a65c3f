// Seeds from the command line; without them the tests.

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/server/simulation/simulation.h"

namespace txl::simulation {
namespace {

// "--NAME N" among the arguments; `value` stays where it is not there.
bool ReadFlag(int argc, char** argv, const std::string& name, int64_t* value) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return absl::SimpleAtoi(argv[i + 1], value);
  }
  return false;
}

int ReplaySeed(uint64_t seed) {
  const SeedResult result = RunSeed(seed, /*tracing=*/true);
  std::printf("%s\nseed %lu: %s\n", absl::StrJoin(result.trace, "\n").c_str(),
              seed,
              result.divergence.empty() ? "as the model has it"
                                        : result.divergence.c_str());
  return result.divergence.empty() ? 0 : 1;
}

int RunRange(uint64_t first, int64_t count) {
  const SeedsResult result = RunSeeds(first, count);
  if (!result.divergence.empty()) {
    std::printf("%s\n", result.divergence.c_str());
    return 1;
  }
  for (int i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    std::printf("%-22s %ld\n", FaultName(fault).c_str(),
                result.faults.of(fault));
  }
  std::printf("%ld seeds from %lu on: 0 divergences\n", result.run, first);
  return result.faults.Missing().empty() ? 0 : 1;
}

}  // namespace
}  // namespace txl::simulation

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int64_t seed = 1;
  int64_t seeds = 0;
  using txl::simulation::ReadFlag;
  const bool one = ReadFlag(argc, argv, "--seed", &seed);
  if (ReadFlag(argc, argv, "--seeds", &seeds)) {
    return txl::simulation::RunRange(static_cast<uint64_t>(seed), seeds);
  }
  if (one) return txl::simulation::ReplaySeed(static_cast<uint64_t>(seed));
  return RUN_ALL_TESTS();
}
