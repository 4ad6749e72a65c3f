#include "client/fleet/server.h"

#include <gtest/gtest.h>

namespace txl::fleet {
namespace {

ServerCosts TwoSlots() {
  ServerCosts costs;
  costs.slots = 2;
  costs.local_images = 1;
  return costs;
}

TEST(Server, KeepsSessionsInTheirSlotsUntilThoseAreNeeded) {
  const ServerCosts costs = TwoSlots();
  Server server(&costs);
  EXPECT_EQ(server.Enter(1).found, Memory::kRebuilt);
  server.Leave(1);
  const Server::Entrance again = server.Enter(1);
  EXPECT_EQ(again.found, Memory::kSlot);
  EXPECT_EQ(again.evicted, std::nullopt);
  server.Leave(1);
  server.Warm(2);
  EXPECT_EQ(server.in_slots(), 2);
  EXPECT_EQ(server.Enter(3).evicted, 1u);
  EXPECT_EQ(server.in_slots(), 2);
}

TEST(Server, HasNoRoomWhileTurnsHaveAllSlots) {
  const ServerCosts costs = TwoSlots();
  Server server(&costs);
  server.Enter(1);
  EXPECT_TRUE(server.HasRoom());
  server.Enter(2);
  EXPECT_FALSE(server.HasRoom());
  server.Leave(1);
  EXPECT_TRUE(server.HasRoom());
  // Who runs is not evicted.
  EXPECT_EQ(server.Enter(3).evicted, 1u);
}

TEST(Server, FindsTheImagesItStillHas) {
  const ServerCosts costs = TwoSlots();
  Server server(&costs);
  for (const uint64_t session : {1, 2, 3, 4}) server.Warm(session);
  // 1 and 2 have left, and there is room for one image.
  EXPECT_EQ(server.Enter(2).found, Memory::kLocalImage);
  EXPECT_EQ(server.Enter(1).found, Memory::kRebuilt);
}

TEST(Server, LosesEverythingInMemory) {
  const ServerCosts costs = TwoSlots();
  Server server(&costs);
  for (const uint64_t session : {1, 2, 3}) server.Warm(session);
  server.Enter(3);
  server.waiting.push_back(0);
  const uint32_t version = server.version;
  server.Lose(1);
  EXPECT_EQ(server.in_slots(), 0);
  EXPECT_TRUE(server.waiting.empty());
  EXPECT_NE(server.version, version);
  EXPECT_EQ(server.Enter(3).found, Memory::kRebuilt);
  EXPECT_EQ(server.Enter(1).found, Memory::kRebuilt);
}

}  // namespace
}  // namespace txl::fleet
