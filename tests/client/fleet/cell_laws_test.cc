// What holds of every cell, whatever it is made of and loses.

#include <gtest/gtest.h>

#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

// Up to six servers with few slots, images of any kind, a load that may be too
// much, failures of any of them at any time.
CellOptions DrawCell(uint64_t seed) {
  bench::Random random({seed, 99});
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random.Uniform() * static_cast<double>(n));
  };
  CellOptions cell = SmallCell();
  cell.seed = seed;
  cell.servers = static_cast<int32_t>(1 + below(6));
  cell.server.device = {*StepCosts::Parse({"1:0.001", "8:0.003"}),
                        1e-4 * random.Uniform() + 1e-9, 64};
  cell.server.slots = static_cast<int32_t>(1 + below(12));
  cell.server.local_images = below(30);
  cell.server.local_read_seconds = 0.01 * random.Uniform();
  cell.server.rebuild_rows = static_cast<double>(1 + below(5000));
  cell.images.on = below(2) == 0;
  cell.images.bytes = 1e6;
  cell.images.bytes_per_second = 1e6 * static_cast<double>(1 + below(100));
  cell.images.snapshot_tokens = below(2) * 500;
  cell.store.shards = static_cast<int32_t>(1 + below(3));
  cell.store.costs = {0.005 * random.Uniform(), 1e-4 * random.Uniform() + 1e-9};
  cell.store.append_tokens = 1 + below(64);
  cell.store.upkeep_seconds = static_cast<double>(seed % 2);
  cell.mix.conversations_per_second = static_cast<double>(1 + below(30));
  cell.mix.sessions = 10 + below(3000);
  cell.mix.zipf_exponent = 1.5 * random.Uniform();
  cell.mix.turns = Lengths("uniform:1:4");
  cell.mix.think_seconds = Lengths("exponential:1");
  cell.mix.prompt_tokens = Lengths("uniform:1:200");
  cell.mix.answer_tokens = Lengths("exponential:80");
  cell.mix.session_tokens = Lengths("uniform:0:5000");
  cell.warm_conversations = below(2) * 500;
  cell.warmup_seconds = static_cast<double>(below(10));
  cell.seconds = 30;
  for (int64_t i = below(4); i > 0; --i) {
    cell.recovery.failures.push_back(
        {random.Uniform() * 40, static_cast<int32_t>(1 + below(cell.servers)),
         random.Uniform() * 10, below(2) == 0});
  }
  return cell;
}

class CellLaws : public testing::Test {
 protected:
  void ForCells(void (*check)(const CellOptions&, const Figures&)) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE(seed);
      const CellOptions cell = DrawCell(seed);
      check(cell, RunCell(cell));
    }
  }
};

TEST_F(CellLaws, TurnsEndOrAreLeft) {
  ForCells([](const CellOptions& cell, const Figures& figures) {
    EXPECT_EQ(figures.turns_at_start + figures.turns_due,
              figures.turns_ended + figures.turns_left);
    EXPECT_EQ(figures.end_to_end.count(), figures.turns_ended);
    // A failure of the warm-up may be got over after it.
    if (cell.warmup_seconds == 0) {
      EXPECT_LE(figures.takeover.count(), figures.turns_broken);
    }
  });
}

TEST_F(CellLaws, NothingWorksForLongerThanItIsThere) {
  ForCells([](const CellOptions& cell, const Figures& figures) {
    constexpr double kRounding = 1e-6;
    EXPECT_LE(figures.device_busy_seconds, figures.server_seconds + kRounding);
    EXPECT_LE(figures.slot_seconds,
              figures.server_seconds * cell.server.slots + kRounding);
    EXPECT_GE(figures.slot_seconds, 0);
    // But for what has begun and is not over.
    EXPECT_LE(figures.shard_busy_seconds, figures.shard_seconds + 5);
  });
}

TEST_F(CellLaws, StatesComeFromWhereTheyCanBe) {
  ForCells([](const CellOptions& cell, const Figures& figures) {
    const auto began = [&](Memory memory) {
      return figures.memories[static_cast<int>(memory)];
    };
    if (cell.images.on) {
      EXPECT_EQ(began(Memory::kRebuilt), 0);
    } else {
      EXPECT_EQ(began(Memory::kSharedImage), 0);
      EXPECT_EQ(figures.image_writes, 0);
    }
    EXPECT_EQ(figures.image_reads, began(Memory::kSharedImage));
    if (cell.server.local_images == 0) {
      EXPECT_EQ(began(Memory::kLocalImage), 0);
    }
    const int64_t brought =
        began(Memory::kRebuilt) + began(Memory::kSharedImage);
    EXPECT_LE(static_cast<double>(figures.rebuilt_rows),
              cell.server.rebuild_rows * static_cast<double>(brought));
  });
}

// By Little's law, where nothing is in being at either end.
TEST_F(CellLaws, TurnsInBeingAreTheirRateTimesTheirTime) {
  CellOptions cell = DrawCell(5);
  cell.servers = 4;
  cell.server.slots = 100;
  cell.recovery.failures = {{20, 2, 30, false}};
  cell.mix.conversations_per_second = 3;
  cell.mix.sessions = 100'000;
  cell.warmup_seconds = 0;
  cell.seconds = 3000;
  const Figures figures = RunCell(cell);
  const double in_being = figures.end_to_end.mean() / 1e9 *
                          static_cast<double>(figures.turns_ended);
  // Slots are what a turn has between its two waits for the store.
  EXPECT_LT(figures.slot_seconds, in_being);
  EXPECT_GT(figures.slot_seconds, 0.7 * in_being);
}

}  // namespace
}  // namespace txl::fleet
