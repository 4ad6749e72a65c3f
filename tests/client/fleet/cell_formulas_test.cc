// Cells that are simple enough for queueing theory, against its formulas.

#include <gtest/gtest.h>

#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

constexpr double kNanos = 1e9;

double MeanSeconds(const bench::Histogram& histogram) {
  return histogram.mean() / kNanos;
}

// One device whose steps take as long as it has streams shares its processor
// out: M/G/1-PS, where the mean response is s / (1 - rho) whatever the lengths
// are distributed like. (The first of 101 tokens comes with the prompt.)
TEST(CellFormulas, StreamsShareAProcessor) {
  for (const char* lengths : {"101", "exponential:101", "uniform:1:201"}) {
    CellOptions cell = SmallCell();
    cell.server.device.steps = *StepCosts::Parse({"1:0.001"});
    cell.mix.conversations_per_second = 7;
    cell.mix.answer_tokens = Lengths(lengths);
    cell.warmup_seconds = 100;
    cell.seconds = 20'000;
    const Figures figures = RunCell(cell);
    EXPECT_NEAR(MeanSeconds(figures.end_to_end) / (0.1 / (1 - 0.7)), 1, 0.05)
        << lengths;
    EXPECT_NEAR(figures.device_busy_seconds / figures.seconds, 0.7, 0.01)
        << lengths;
  }
}

// With one slot they wait in line: M/D/1, with a mean wait of
// rho s / (2 (1 - rho)) (Pollaczek, Khinchine).
TEST(CellFormulas, TurnsWaitInLineForASlot) {
  CellOptions cell = SmallCell();
  cell.server.slots = 1;
  cell.mix.conversations_per_second = 8;
  cell.mix.answer_tokens = Lengths("101");
  cell.warmup_seconds = 100;
  cell.seconds = 20'000;
  const Figures figures = RunCell(cell);
  const double wait = 0.8 * 0.1 / (2 * (1 - 0.8));
  EXPECT_NEAR(MeanSeconds(figures.end_to_end) / (wait + 0.1), 1, 0.04);
}

// The same for M/M/1, whose lengths double the wait.
TEST(CellFormulas, TurnsOfAnyLengthWaitLonger) {
  CellOptions cell = SmallCell();
  cell.server.slots = 1;
  cell.mix.conversations_per_second = 7;
  cell.mix.answer_tokens = Lengths("exponential:101");
  cell.warmup_seconds = 100;
  cell.seconds = 20'000;
  const Figures figures = RunCell(cell);
  EXPECT_NEAR(MeanSeconds(figures.end_to_end) / (0.1 / (1 - 0.7)), 1, 0.05);
}

// Prompts of one length never overtake each other: M/D/1 again, of 100 ms.
TEST(CellFormulas, PromptsWaitInLineForRows) {
  CellOptions cell = SmallCell();
  cell.server.device.prompt_row_seconds = 0.001;
  cell.server.device.prompt_rows_per_step = 20;
  cell.mix.conversations_per_second = 7;
  cell.mix.prompt_tokens = Lengths("100");
  cell.warmup_seconds = 100;
  cell.seconds = 20'000;
  const Figures figures = RunCell(cell);
  const double wait = 0.7 * 0.1 / (2 * (1 - 0.7));
  EXPECT_NEAR(MeanSeconds(figures.end_to_end) / (wait + 0.1), 1, 0.04);
}

// Steps that cost the same in any company: M/G/inf. By Little's law as many
// turns have a slot as come within a turn's time.
TEST(CellFormulas, SlotsInUseAreRateTimesTime) {
  CellOptions cell = SmallCell();
  cell.mix.conversations_per_second = 50;
  cell.mix.answer_tokens = Lengths("exponential:401");
  cell.warmup_seconds = 10;
  const Figures figures = RunCell(cell);
  EXPECT_NEAR(figures.slot_seconds / figures.seconds, 50 * 0.4, 0.5);
  EXPECT_NEAR(MeanSeconds(figures.end_to_end), 0.4, 0.01);
}

// The slots of a server are a list of the sessions used last.
TEST(CellFormulas, SessionsAreInTheirSlotsAsChesApproximationSays) {
  CellOptions cell = SmallCell();
  cell.server.slots = 200;
  cell.mix.sessions = 5000;
  cell.mix.zipf_exponent = 0.8;
  cell.mix.conversations_per_second = 20;
  cell.warm_conversations = 20'000;
  cell.seconds = 2000;
  const Figures figures = RunCell(cell);
  const auto turns = static_cast<double>(figures.turns_due);
  const auto in_slots =
      static_cast<double>(figures.memories[static_cast<int>(Memory::kSlot)]);
  EXPECT_NEAR(in_slots / turns, CheHitRate(5000, 0.8, 200), 0.01);
}

// A way that takes 20 ms for an image, and images alone: M/D/1.
TEST(CellFormulas, ImagesWaitInLineForTheirWay) {
  CellOptions cell = SmallCell();
  cell.images.on = true;
  cell.images.bytes = 2e6;
  cell.images.bytes_per_second = 1e8;
  cell.mix.conversations_per_second = 25;
  cell.mix.session_tokens = Lengths("4000");
  // So long that nobody has to leave a slot.
  cell.seconds = 3500;
  const Figures figures = RunCell(cell);
  EXPECT_NEAR(figures.link_busy_seconds / figures.link_seconds, 0.5, 0.01);
  const double wait = 0.5 * 0.02 / (2 * (1 - 0.5));
  EXPECT_NEAR(MeanSeconds(figures.end_to_end) / (wait + 0.02), 1, 0.04);
}

}  // namespace
}  // namespace txl::fleet
