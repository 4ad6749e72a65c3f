// The scheduler, the session store, streams and the clock under random faults,
// against the reference model. One seed again, with everything that happens in
// it: txl_server_simulation_test --seed N; others: --seed N --seeds COUNT.

#include "tests/server/simulation/simulation.h"

#include <cstdio>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace txl::simulation {
namespace {

constexpr uint64_t kFirstSeed = 1;
constexpr int64_t kSeeds = 10'000;

TEST(Simulation, NoSeedDivergesFromTheModelAndEveryFaultFires) {
  const SeedsResult result = RunSeeds(kFirstSeed, kSeeds);
  EXPECT_EQ(result.divergence, "");
  EXPECT_EQ(result.run, kSeeds);
  EXPECT_EQ(absl::StrJoin(result.faults.Missing(), " "), "");
}

TEST(Simulation, ASeedGivesTheSameAgain) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SeedResult once = RunSeed(seed, /*tracing=*/true);
    const SeedResult again = RunSeed(seed, /*tracing=*/true);
    EXPECT_EQ(once.trace, again.trace) << "seed " << seed;
    EXPECT_GT(once.trace.size(), 10u);
  }
}

}  // namespace
}  // namespace txl::simulation
