// Each of these programs has a bug put into one file of the server
// (CMakeLists.txt): a simulation that does not see it is none.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/simulation/simulation.h"

namespace txl::simulation {
namespace {

// What the simulation says of the bug that TXL_BUG names.
[[maybe_unused]] constexpr char kDeleteBetweenReleaseAndHandover[] =
    "sessions are busy";
[[maybe_unused]] constexpr char kPrefixOfAnotherTenant[] =
    "rows of somebody else";
[[maybe_unused]] constexpr char kPrefixTooLong[] = "";

TEST(SimulationOfABug, SeesIt) {
  const SeedsResult result = RunSeeds(/*first=*/1, /*count=*/10'000);
  EXPECT_THAT(result.divergence, ::testing::HasSubstr(TXL_BUG));
  EXPECT_GT(result.diverging_seed, 0u);
  EXPECT_LT(result.run, 10'000);
  RecordProperty("seed", std::to_string(result.diverging_seed));
}

}  // namespace
}  // namespace txl::simulation
