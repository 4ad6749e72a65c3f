#include <gtest/gtest.h>

#include "client/fleet/options.h"
#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

// Ten servers with 50 streams each, of 2 s.
CellOptions TenServers() {
  CellOptions cell = SmallCell();
  cell.servers = 10;
  cell.mix.conversations_per_second = 250;
  cell.mix.answer_tokens = Lengths("2001");
  cell.mix.session_tokens = Lengths("4000");
  cell.warmup_seconds = 10;
  cell.seconds = 30;
  cell.store.append_tokens = 100;
  return cell;
}

double Seconds(bench::Nanos time) { return bench::ToSeconds(time); }

TEST(Failures, BreakTheStreamsOfTheLostServerAndNoOther) {
  CellOptions cell = TenServers();
  cell.recovery.failures = {{20, 1, 1000, false}};
  const Figures figures = RunCell(cell);
  // As many as come to it within 2 s: Poisson, deviation 7.
  EXPECT_NEAR(static_cast<double>(figures.turns_broken), 50, 28);
  EXPECT_EQ(figures.takeover.count(), figures.turns_broken);
  EXPECT_EQ(figures.turns_at_start + figures.turns_due,
            figures.turns_ended + figures.turns_left);
  // It takes a client's first wait, 50 to 100 ms, and one more where the proxy
  // still sent it to the lost server, of which it knows after 0.5 s.
  EXPECT_GE(Seconds(figures.takeover.min()), 0.05);
  EXPECT_LT(Seconds(figures.takeover.max()), 1.6);
  EXPECT_GT(figures.failed_attempts, figures.turns_broken);
}

TEST(Failures, WithoutAResetAreSeenWhenAClientGivesUp) {
  CellOptions cell = TenServers();
  cell.recovery.failures = {{20, 1, 1000, true}};
  cell.recovery.stall_seconds = 7;
  const Figures figures = RunCell(cell);
  EXPECT_GE(Seconds(figures.takeover.min()), 7.05);
  EXPECT_LT(Seconds(figures.takeover.max()), 7.2);
}

TEST(Failures, CostARebuildEachOrAnImage) {
  CellOptions cell = TenServers();
  cell.server.rebuild_rows = 3000;
  cell.recovery.failures = {{20, 3, 1000, false}};
  const Figures before = RunCell(TenServers());
  const Figures rebuilt = RunCell(cell);
  EXPECT_EQ(rebuilt.image_reads, 0);
  // Whoever comes to a new server or is new there is rebuilt.
  EXPECT_EQ(rebuilt.rebuilt_rows,
            3000 * rebuilt.memories[static_cast<int>(Memory::kRebuilt)]);
  EXPECT_EQ(before.turns_broken, 0);

  cell.images.on = true;
  const Figures images = RunCell(cell);
  EXPECT_EQ(images.memories[static_cast<int>(Memory::kRebuilt)], 0);
  // A turn that is broken is behind the image by what it has made of its 2,002
  // tokens: 1,000 on average, less what was not appended.
  EXPECT_NEAR(static_cast<double>(images.rebuilt_rows) /
                  static_cast<double>(images.turns_broken),
              950, 150);
}

TEST(Failures, LeaveTheirLoadToTheOthersUntilTheServerIsBack) {
  CellOptions cell = TenServers();
  cell.warmup_seconds = 25;
  cell.seconds = 20;
  cell.recovery.failures = {{20, 5, 1000, false}};
  const Figures figures = RunCell(cell);
  // By Little's law there are 500 streams, on five servers now.
  EXPECT_NEAR(figures.slot_seconds / figures.seconds, 500, 30);
  EXPECT_NEAR(figures.device_busy_seconds / figures.seconds, 5, 0.01);
  cell.recovery.failures[0].for_seconds = 5;
  EXPECT_NEAR(RunCell(cell).device_busy_seconds / figures.seconds, 10, 0.1);
}

TEST(Failures, OfEveryServerEndWhenOneIsBack) {
  CellOptions cell = TenServers();
  cell.recovery.failures = {{15, 10, 3, false}};
  const Figures figures = RunCell(cell);
  EXPECT_GE(Seconds(figures.takeover.min()), 3);
  EXPECT_EQ(figures.takeover.count(), figures.turns_broken);
  EXPECT_EQ(figures.turns_at_start + figures.turns_due,
            figures.turns_ended + figures.turns_left);
}

TEST(CheckCell, RefusesToLoseMoreServersThanThereAre) {
  CellOptions cell = TenServers();
  cell.recovery.failures = {{1, 10, 1, false}};
  EXPECT_TRUE(CheckCell(cell).ok());
  cell.recovery.failures = {{1, 11, 1, false}};
  EXPECT_FALSE(CheckCell(cell).ok());
}

}  // namespace
}  // namespace txl::fleet
