#include "tests/bench/front/scheduler_run.h"

#include <gtest/gtest.h>

#include "model/text/byte_vocabulary.h"

namespace txl {
namespace {

// Steps of some microseconds.
SchedulerRunOptions Fast(int32_t sessions, int64_t steps) {
  SchedulerRunOptions options;
  options.runner.rows_per_second = 1e7;
  options.runner.max_rows = 16;
  options.runner.vocab_size = ByteVocabulary::kSize;
  options.sessions = sessions;
  options.steps = steps;
  return options;
}

TEST(MeasureSchedulerTest, CountsTheTokensOfTheMeasuredSteps) {
  const ByteVocabulary vocabulary;
  SchedulerRunOptions options = Fast(16, 50);
  options.vocabulary = &vocabulary;
  const absl::StatusOr<RunCost> cost = MeasureScheduler(options);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->tokens, 16 * 50);
  EXPECT_GT(cost->time, absl::ZeroDuration());
  EXPECT_GE(cost->processor_seconds, 0);
  // Two steps may have been in flight at either end, and a turn that is over
  // leaves a row that nobody wants.
  EXPECT_NEAR(static_cast<double>(cost->device.rows), 16 * 50, 3 * 16);
}

TEST(MeasureSchedulerTest, NeedsNoVocabulary) {
  const absl::StatusOr<RunCost> cost = MeasureScheduler(Fast(1, 10));
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->tokens, 10);
}

TEST(MeasureRunnerAloneTest, RunsTheSameRows) {
  const absl::StatusOr<RunCost> cost = MeasureRunnerAlone(Fast(8, 40));
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->tokens, 8 * 40);
  EXPECT_GT(cost->time, absl::ZeroDuration());
  EXPECT_NEAR(static_cast<double>(cost->device.rows), 8 * 40, 2 * 8);
}

TEST(CostLineTest, StatesRatesAndShares) {
  RunCost cost;
  cost.tokens = 90'000;
  cost.time = absl::Seconds(2);
  cost.processor_seconds = 0.045;
  cost.device.steps = 200;
  cost.device.late_steps = 50;
  cost.device.idle = absl::Milliseconds(500);
  const nlohmann::ordered_json line = CostLine(cost, 60'000);
  EXPECT_DOUBLE_EQ(line["tokens_per_second"], 45'000);
  EXPECT_DOUBLE_EQ(line["share_of_rate"], 0.75);
  EXPECT_EQ(line["steps"], 200);
  EXPECT_DOUBLE_EQ(line["share_on_time"], 0.75);
  EXPECT_DOUBLE_EQ(line["idle_share"], 0.25);
  EXPECT_DOUBLE_EQ(line["processor_microseconds_per_token"], 0.5);
}

}  // namespace
}  // namespace txl
