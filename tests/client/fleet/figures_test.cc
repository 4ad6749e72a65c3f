#include "client/fleet/figures.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

Figures OfSeed(uint64_t seed) {
  CellOptions cell = SmallCell();
  cell.seed = seed;
  cell.servers = 3;
  cell.seconds = 50;
  cell.mix.answer_tokens = Lengths("exponential:300");
  cell.mix.conversations_per_second = 30;
  cell.recovery.failures = {{20, 1, 10, false}};
  cell.images.on = true;
  cell.images.bytes = 1000;
  cell.images.bytes_per_second = 1e6;
  return RunCell(cell);
}

TEST(Figures, OfCellsAddUp) {
  const Figures one = OfSeed(1);
  const Figures two = OfSeed(2);
  Figures both;
  both.Merge(one);
  both.Merge(two);
  EXPECT_EQ(both.cells, 2);
  EXPECT_EQ(both.seconds, 50);
  EXPECT_EQ(both.server_seconds, 300);
  EXPECT_EQ(both.turns_due, one.turns_due + two.turns_due);
  EXPECT_EQ(both.turns_ended + both.turns_left, both.turns_due);
  EXPECT_EQ(both.tokens, one.tokens + two.tokens);
  EXPECT_EQ(both.commands, one.commands + two.commands);
  EXPECT_EQ(both.turns_broken, one.turns_broken + two.turns_broken);
  EXPECT_EQ(both.image_reads, one.image_reads + two.image_reads);
  EXPECT_DOUBLE_EQ(both.slot_seconds, one.slot_seconds + two.slot_seconds);
  EXPECT_DOUBLE_EQ(both.link_busy_seconds,
                   one.link_busy_seconds + two.link_busy_seconds);
  EXPECT_EQ(both.takeover.count(), one.takeover.count() + two.takeover.count());
  EXPECT_EQ(both.first_token.max(),
            std::max(one.first_token.max(), two.first_token.max()));
  for (int i = 0; i < kMemories; ++i) {
    EXPECT_EQ(both.memories[i], one.memories[i] + two.memories[i]);
  }
}

}  // namespace
}  // namespace txl::fleet
