// Each of these programs has a bug put into one file of the server
// (CMakeLists.txt): a simulation that does not see it is none. The same seeds
// without it are as the model has them (simulation_test.cc).

#include <string>

#include "gtest/gtest.h"
#include "tests/server/simulation/simulation.h"

namespace txl::simulation {
namespace {

TEST(SimulationOfABug, SeesIt) {
  const SeedsResult result = RunSeeds(/*first=*/1, /*count=*/10'000);
  EXPECT_FALSE(result.divergence.empty());
  EXPECT_GT(result.diverging_seed, 0u);
  EXPECT_LT(result.run, 10'000);
  RecordProperty("seed", std::to_string(result.diverging_seed));
}

}  // namespace
}  // namespace txl::simulation
