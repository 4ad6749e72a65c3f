#include "server/scheduler/slot_table.h"

#include "gtest/gtest.h"

namespace txl {
namespace {

constexpr absl::Duration kNow = absl::Seconds(9);

TEST(SlotTable, ATurnsSessionStaysInItsSlotAfterTheTurn) {
  SlotTable table(2);
  table.Assign(1, 7);
  EXPECT_TRUE(table.at(1).running);
  table.Leave(1, 30, kNow);
  EXPECT_EQ(table.at(1).key, 7u);
  EXPECT_FALSE(table.at(1).running);
  EXPECT_EQ(table.at(1).rows, 30);
  EXPECT_EQ(table.at(1).last_use, kNow);
  EXPECT_EQ(table.used(), 1);
}

TEST(SlotTable, ASessionThatEndsWhileIdleLeavesAtOnce) {
  SlotTable table(2);
  table.Assign(0, 7);
  table.Leave(0, 30, kNow);
  table.EndSession(7);
  EXPECT_FALSE(table.at(0).key.has_value());
  EXPECT_EQ(table.used(), 0);
}

TEST(SlotTable, ASessionThatEndsDuringItsTurnLeavesWithIt) {
  SlotTable table(2);
  table.Assign(0, 7);
  table.EndSession(7);
  EXPECT_EQ(table.used(), 1);
  table.Leave(0, 30, kNow);
  EXPECT_EQ(table.used(), 0);
}

TEST(SlotTable, ASlotForgetsItsFormerSession) {
  SlotTable table(1);
  table.Assign(0, 7);
  table.at(0).image_current = true;
  table.Leave(0, 30, kNow);
  table.Free(0);
  table.Assign(0, 8);
  EXPECT_FALSE(table.at(0).image_current);
  EXPECT_EQ(table.at(0).rows, 0);
  table.EndSession(7);
  EXPECT_EQ(table.at(0).key, 8u);
  EXPECT_FALSE(table.at(0).ended);
}

}  // namespace
}  // namespace txl
