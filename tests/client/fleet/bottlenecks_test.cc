#include "client/fleet/bottlenecks.h"

#include <gtest/gtest.h>

#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

// 100 s of two servers with 10 slots and one shard.
Figures Counted() {
  Figures figures;
  figures.seconds = 100;
  figures.server_seconds = 200;
  figures.slot_seconds = 600;
  figures.shard_seconds = 100;
  figures.link_seconds = 100;
  figures.link_busy_seconds = 90;
  figures.commands = 20'000;
  figures.tokens = 40'000;
  figures.prompt_rows = 30'000;
  figures.rebuilt_rows = 10'000;
  return figures;
}

CellOptions CellCosts() {
  CellOptions cell = SmallCell();
  // Ten streams: 2 ms a token, the cheapest there is with ten slots.
  cell.server.device = {*StepCosts::Parse({"1:0.010", "10:0.020", "40:0.021"}),
                        0.001, 128};
  cell.server.slots = 10;
  cell.store.costs = {0.004, 0.001};
  return cell;
}

TEST(Bottlenecks, AreSortedByTheirLoad) {
  CellOptions cell = CellCosts();
  cell.images.on = true;
  const std::vector<Bottleneck> parts = FindBottlenecks(Counted(), cell, 50);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].part, "images");
  EXPECT_DOUBLE_EQ(parts[0].load, 0.9);
  EXPECT_EQ(parts[1].part, "devices");
  // 40,000 tokens at 2 ms and 40,000 rows at 1 ms in 200 s.
  EXPECT_DOUBLE_EQ(parts[1].load, 0.6);
  EXPECT_EQ(parts[2].part, "slots");
  EXPECT_DOUBLE_EQ(parts[2].load, 0.3);
  EXPECT_EQ(parts[3].part, "store");
  EXPECT_DOUBLE_EQ(parts[3].load, 0.2);
  EXPECT_DOUBLE_EQ(parts[3].turns_per_second, 250);
}

TEST(Bottlenecks, AreNotOfImagesThatNobodyShares) {
  for (const Bottleneck& part : FindBottlenecks(Counted(), CellCosts(), 50)) {
    EXPECT_NE(part.part, "images");
  }
}

// Beyond its load a part is full, and turns pile up; below it they do not.
TEST(Bottlenecks, AreWhereTurnsPileUp) {
  CellOptions cell = SmallCell();
  cell.server.slots = 32;
  cell.server.device.steps = *StepCosts::Parse({"1:0.01", "32:0.04"});
  cell.mix.answer_tokens = Lengths("201");
  cell.mix.conversations_per_second = 2;
  const Figures figures = RunCell(cell);
  const double rate =
      static_cast<double>(figures.turns_ended) / figures.seconds;
  const Bottleneck first = FindBottlenecks(figures, cell, rate)[0];
  EXPECT_EQ(first.part, "devices");
  // 800 tokens a second, 200 of which are a turn.
  EXPECT_NEAR(first.turns_per_second, 4, 0.05);
  cell.mix.conversations_per_second = 3.6;
  EXPECT_LT(RunCell(cell).turns_left, 150);
  cell.mix.conversations_per_second = 4.6;
  EXPECT_GT(RunCell(cell).turns_left, 400);
}

}  // namespace
}  // namespace txl::fleet
