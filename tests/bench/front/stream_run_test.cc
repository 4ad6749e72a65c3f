#include "tests/bench/front/stream_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_step_runner.h"

namespace txl {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

FakeStepRunnerOptions Slots(int32_t slots) { return {.slots = slots}; }

StreamLoad Load(int32_t sessions, int64_t steps) {
  return {.sessions = sessions, .steps = steps, .temperature = 0};
}

TEST(RunStreamsTest, MeasuresStepsOfAllSessionsAfterTheirPrompts) {
  FakeStepRunner runner(Slots(3));
  StreamLoad load = Load(3, 40);
  load.prompt_tokens = 37;
  load.prompt_ids = 5;
  load.prompt_rows_per_step = 10;  // sessions begin at different steps
  std::vector<size_t> borders;
  const auto times = RunStreams(
      load, &runner, [&] { borders.push_back(runner.plans().size()); });
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->tokens, 3 * 40);
  EXPECT_GT(times->time, absl::ZeroDuration());
  EXPECT_GE(times->processor_seconds, 0);
  EXPECT_GE(times->step_seconds.size(), 39u);
  EXPECT_LE(times->step_seconds.size(), 41u);
  EXPECT_THAT(times->beside_seconds, IsEmpty());
  ASSERT_THAT(borders, SizeIs(2));
  EXPECT_NEAR(static_cast<double>(borders[1] - borders[0]), 40, 2);
  const std::vector<StepPlan> plans = runner.plans();
  for (size_t i = borders[0]; i < borders[1]; ++i) {
    EXPECT_THAT(plans[i].rows, SizeIs(3));
    for (const StepRow& row : plans[i].rows) {
      EXPECT_EQ(row.kind, RowKind::kDecode);
    }
  }
  for (const StepRow& row : plans[0].rows) EXPECT_LT(row.token_id, 5);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(RunStreamsTest, APromptIsFedBesideTheStreams) {
  FakeStepRunner runner(Slots(3));
  StreamLoad load = Load(2, 10);
  load.prompt_rows_per_step = 8;
  load.beside_tokens = 80;
  const auto times = RunStreams(load, &runner, nullptr);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->tokens, 20);
  // Ten steps of 8 rows, and those in flight at either end.
  EXPECT_NEAR(static_cast<double>(times->beside_seconds.size()), 10, 3);
  int64_t fed = 0;
  for (const StepPlan& plan : runner.plans()) {
    for (const StepRow& row : plan.rows) {
      fed += row.slot == 2 && row.kind == RowKind::kPrefill;
    }
  }
  EXPECT_EQ(fed, 79);  // the last one waits for what comes next
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(RunStreamsTest, LeavesNothingInFlight) {
  FakeStepRunner runner(Slots(2));
  ASSERT_TRUE(RunStreams(Load(2, 5), &runner, nullptr).ok());
  ASSERT_TRUE(RunStreams(Load(2, 5), &runner, nullptr).ok());
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(RunStreamsTest, AStepThatFailsEndsIt) {
  FakeStepRunner runner(Slots(2));
  runner.FailStep(12, absl::InternalError("gone"));
  EXPECT_FALSE(RunStreams(Load(2, 100), &runner, nullptr).ok());
}

}  // namespace
}  // namespace txl
