#include "client/fleet/cell.h"

#include <gtest/gtest.h>

#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

int64_t Began(const Figures& figures, Memory memory) {
  return figures.memories[static_cast<int>(memory)];
}

// Four servers, two shards, conversations with pauses, everything at a cost.
CellOptions WholeCell() {
  CellOptions cell = SmallCell();
  cell.servers = 4;
  cell.server.device = {*StepCosts::Parse({"1:0.001", "8:0.002"}), 1e-5, 128};
  cell.server.slots = 16;
  cell.server.local_images = 40;
  cell.server.local_read_seconds = 0.01;
  cell.server.rebuild_rows = 1000;
  cell.store.shards = 2;
  cell.store.costs = {0.004, 1e-5};
  cell.store.command_bytes = 100;
  cell.store.token_bytes = 4;
  cell.store.append_tokens = 32;
  cell.store.append_seconds = 1;
  cell.mix.sessions = 1000;
  cell.mix.conversations_per_second = 5;
  cell.mix.turns = Lengths("uniform:1:5");
  cell.mix.think_seconds = Lengths("exponential:3");
  cell.mix.prompt_tokens = Lengths("uniform:1:100");
  cell.mix.answer_tokens = Lengths("exponential:100");
  cell.mix.session_tokens = Lengths("4000");
  cell.seconds = 200;
  return cell;
}

TEST(Cell, TurnsThatComeEndOrAreLeft) {
  for (const double warmup : {0.0, 30.0}) {
    CellOptions cell = WholeCell();
    cell.warmup_seconds = warmup;
    cell.mix.answer_tokens = Lengths("exponential:1000");
    const Figures figures = RunCell(cell);
    EXPECT_EQ(figures.turns_at_start + figures.turns_due,
              figures.turns_ended + figures.turns_left);
    EXPECT_EQ(figures.turns_at_start == 0, warmup == 0);
    EXPECT_GT(figures.turns_ended, 2000);
    EXPECT_EQ(figures.end_to_end.count(), figures.turns_ended);
  }
}

TEST(Cell, IsTheSameForASeed) {
  CellOptions cell = WholeCell();
  const Figures one = RunCell(cell);
  const Figures same = RunCell(cell);
  cell.seed = 2;
  const Figures other = RunCell(cell);
  EXPECT_EQ(one.tokens, same.tokens);
  EXPECT_EQ(one.first_token.buckets(), same.first_token.buckets());
  EXPECT_NE(one.first_token.buckets(), other.first_token.buckets());
}

// Every turn of 100 tokens acquires, begins, appends 33, 32 and 32, and
// finishes; its prompt and its answer are told once.
TEST(Cell, TellsTheStoreOfEachTokenOnce) {
  CellOptions cell = WholeCell();
  cell.mix.prompt_tokens = Lengths("50");
  cell.mix.answer_tokens = Lengths("100");
  cell.mix.conversations_per_second = 1;
  cell.mix.turns = Lengths("1");
  // Nothing is in flight at the end but by chance.
  const Figures figures = RunCell(cell);
  const auto turns = static_cast<double>(figures.turns_ended);
  EXPECT_NEAR(static_cast<double>(figures.commands), 6 * turns, 6);
  EXPECT_NEAR(figures.store_bytes, turns * (6 * 100 + 150 * 4), 1000);
  EXPECT_NEAR(static_cast<double>(figures.tokens), 100 * turns, 100);
  EXPECT_NEAR(static_cast<double>(figures.prompt_rows), 50 * turns, 50);
}

// 20 ms a token: 50 in a second, and no more than 50 until the next append.
TEST(Cell, AppendsInTimeWhereTokensAreSlow) {
  CellOptions cell = SmallCell();
  cell.server.device.steps = *StepCosts::Parse({"1:0.02", "100000:0.02"});
  cell.store.append_seconds = 1;
  cell.mix.answer_tokens = Lengths("201");
  cell.mix.conversations_per_second = 0.1;
  const Figures figures = RunCell(cell);
  // Acquire, begin, 1 + 50, 50, 50, and the last 50 with the end.
  EXPECT_NEAR(static_cast<double>(figures.commands) /
                  static_cast<double>(figures.turns_ended),
              6, 0.1);
}

// A prompt of a hundred rows takes ten seconds, and nothing is told meanwhile.
TEST(Cell, KeepsATurnThatTellsNothing) {
  CellOptions cell = SmallCell();
  cell.servers = 3;
  cell.server.device.prompt_row_seconds = 0.1;
  cell.mix.prompt_tokens = Lengths("100");
  cell.mix.conversations_per_second = 0.001;
  cell.mix.sessions = 1;  // one turn at a time
  cell.seconds = 100'000;
  const auto commands = [&](double upkeep) {
    cell.store.upkeep_seconds = upkeep;
    return RunCell(cell);
  };
  const Figures never = commands(0);
  const Figures often = commands(2);
  EXPECT_EQ(often.turns_ended, never.turns_ended);
  ASSERT_GT(often.turns_ended, 50);
  // Each server asks 50,000 times; a turn is kept four or five times.
  const auto kept =
      static_cast<double>(often.commands - never.commands) - 3 * 50'000;
  EXPECT_NEAR(kept / static_cast<double>(often.turns_ended), 4.5, 0.6);
}

TEST(Cell, AServerThatIsLostAsksNothing) {
  CellOptions cell = SmallCell();
  cell.servers = 2;
  cell.store.shards = 3;
  cell.store.upkeep_seconds = 1;
  cell.mix.conversations_per_second = 1e-9;
  cell.seconds = 1000;
  cell.recovery.failures = {{500, 1, 1e9, false}};
  // Two for half of the time, one for the other half, each of three shards.
  EXPECT_NEAR(static_cast<double>(RunCell(cell).commands), 3 * 1500, 12);
}

// The first and the last command wait 4 ms for the disk, and the last one for
// the begin's round before it; the first token waits for one of them.
TEST(Cell, WaitsForTheStoreAtBothEnds) {
  CellOptions cell = SmallCell();
  cell.store.costs = {0.004, 1e-9};
  cell.mix.conversations_per_second = 1;
  const Figures figures = RunCell(cell);
  EXPECT_NEAR(bench::ToSeconds(figures.end_to_end.Percentile(0.5)), 0.012,
              0.0001);
  // And for a step that ran, and its own.
  EXPECT_NEAR(bench::ToSeconds(figures.first_token.Percentile(0.5)), 0.005,
              0.0001);
}

// A session's later turns find its state in the slot; its first one rebuilds
// 4,000 rows, or 1,000 where no more are needed.
TEST(Cell, RebuildsWhatNoImageHas) {
  CellOptions cell = SmallCell();
  cell.mix.turns = Lengths("4");
  cell.mix.session_tokens = Lengths("4000");
  for (const double most : {1000, 10'000}) {
    cell.server.rebuild_rows = most;
    const Figures figures = RunCell(cell);
    const int64_t first = Began(figures, Memory::kRebuilt);
    EXPECT_NEAR(static_cast<double>(Began(figures, Memory::kSlot)), 3.0 * first,
                10);
    EXPECT_EQ(figures.rebuilt_rows, first * (most == 1000 ? 1000 : 4000));
  }
}

// Ten sessions and one slot: every turn finds another session there.
TEST(Cell, BringsImagesBackFromWhereTheyAre) {
  CellOptions cell = SmallCell();
  cell.server.slots = 1;
  cell.mix.sessions = 10;
  cell.mix.session_tokens = Lengths("4000");
  cell.server.local_images = 10;
  const Figures local = RunCell(cell);
  EXPECT_EQ(Began(local, Memory::kRebuilt), 10);
  EXPECT_GT(Began(local, Memory::kLocalImage), 500);
  EXPECT_EQ(local.image_reads, 0);

  cell.server.local_images = 0;
  cell.images.on = true;
  const Figures shared = RunCell(cell);
  EXPECT_EQ(Began(shared, Memory::kRebuilt), 0);
  EXPECT_EQ(shared.image_reads, Began(shared, Memory::kSharedImage));
  // Written on leaving the slot, so that nothing has to be made up for.
  EXPECT_NEAR(static_cast<double>(shared.image_writes),
              static_cast<double>(shared.image_reads), 1);
  EXPECT_EQ(shared.rebuilt_rows, 0);
}

// Turns of 11 + 9 tokens: every fifth one is 100 behind the last image.
TEST(Cell, WritesImagesAtTheEndOfTurnsWhereTheyAreAskedFor) {
  CellOptions cell = SmallCell();
  cell.images.on = true;
  cell.images.snapshot_tokens = 100;
  cell.mix.turns = Lengths("100");
  cell.mix.think_seconds = Lengths("1");
  cell.mix.conversations_per_second = 0.1;
  cell.mix.prompt_tokens = Lengths("11");
  cell.mix.answer_tokens = Lengths("9");
  const Figures figures = RunCell(cell);
  EXPECT_NEAR(static_cast<double>(figures.image_writes) /
                  static_cast<double>(figures.turns_ended),
              0.2, 0.01);
}

TEST(Cell, HasSessionsOnlyWhenTheyAreUsed) {
  CellOptions options = SmallCell();
  options.seconds = 100;
  Cell cell(&options);
  const Figures figures = cell.Run();
  EXPECT_EQ(cell.sessions_touched(), figures.turns_due);
}

TEST(Cell, RefusesConversationsWithoutASession) {
  CellOptions cell = SmallCell();
  cell.mix.sessions = 1;
  cell.mix.turns = Lengths("1000");
  cell.mix.think_seconds = Lengths("10");
  const Figures figures = RunCell(cell);
  EXPECT_GT(figures.conversations_refused, 900);
  EXPECT_GT(figures.turns_due, 90);
}

}  // namespace
}  // namespace txl::fleet
