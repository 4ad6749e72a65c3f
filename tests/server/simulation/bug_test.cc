// This program's session_lease.cc has the bug "Release against Delete" put back
// (CMakeLists.txt): a simulation that does not see it is none.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/simulation/simulation.h"

namespace txl::simulation {
namespace {

TEST(SimulationOfABug, ADeleteBetweenAReleaseAndItsHandoverIsCaught) {
  const SeedsResult result = RunSeeds(/*first=*/1, /*count=*/10'000);
  EXPECT_THAT(result.divergence, ::testing::HasSubstr("sessions are busy"));
  EXPECT_GT(result.diverging_seed, 0u);
  EXPECT_LT(result.run, 10'000);
  RecordProperty("seed", std::to_string(result.diverging_seed));
}

}  // namespace
}  // namespace txl::simulation
