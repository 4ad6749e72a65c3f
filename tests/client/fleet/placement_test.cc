#include "client/fleet/placement.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace txl::fleet {
namespace {

constexpr int32_t kServers = 20;
constexpr uint64_t kSessions = 40'000;

int32_t Place(uint64_t session, int32_t last, const std::set<int32_t>& down) {
  return PlaceTurn(session, last, kServers,
                   [&](int32_t server) { return !down.contains(server); });
}

TEST(PlaceTurn, StaysWithTheLastServer) {
  for (uint64_t session = 0; session < 100; ++session) {
    EXPECT_EQ(Place(session, 7, {}), 7);
  }
}

TEST(PlaceTurn, SharesSessionsOut) {
  std::vector<int> of(kServers);
  for (uint64_t i = 0; i < kSessions; ++i) ++of[Place(i, -1, {})];
  // Binomial: 2,000 each, deviation 44.
  for (const int count : of) EXPECT_NEAR(count, 2000, 220);
}

TEST(PlaceTurn, SharesALostServersSessionsOutAndLeavesTheOthers) {
  std::vector<int> of(kServers);
  for (uint64_t i = 0; i < kSessions; ++i) {
    const int32_t before = Place(i, -1, {});
    const int32_t after = Place(i, before, {3});
    if (before == 3) {
      ++of[after];
    } else {
      EXPECT_EQ(after, before);
    }
  }
  EXPECT_EQ(of[3], 0);
  // Some 2,000 over 19: 105 each, deviation 10.
  of.erase(of.begin() + 3);
  for (const int count : of) EXPECT_NEAR(count, 105, 55);
}

TEST(PlaceTurn, FindsTheOnlyServerThatIsUp) {
  std::set<int32_t> down;
  for (int32_t i = 0; i < kServers; ++i) down.insert(i);
  EXPECT_EQ(Place(1, 2, down), -1);
  down.erase(11);
  EXPECT_EQ(Place(1, 2, down), 11);
}

}  // namespace
}  // namespace txl::fleet
