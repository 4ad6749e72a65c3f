#include "tests/bench/session_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_step_runner.h"

namespace txl {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Ge;
using testing::IsEmpty;
using testing::SizeIs;

DriverOptions Sessions(int32_t sessions) { return {.sessions = sessions}; }

std::vector<int64_t> PositionsOf(const StepPlan& plan, int32_t slot) {
  std::vector<int64_t> positions;
  for (const StepRow& row : plan.rows) {
    if (row.slot == slot) positions.push_back(row.position);
  }
  return positions;
}

TEST(SessionDriverTest, FillsOneMemoryWithRowsAndCopiesIt) {
  FakeStepRunner runner;  // 32 rows of memory, 16 spare
  const auto driver = SessionDriver::Create(&runner, Sessions(3));
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_THAT(
      runner.calls(),
      ElementsAre("clear 0", "submit 0", "submit 1", "configure 0", "copy 0 1",
                  "configure 1", "copy 0 2", "configure 2"));
  EXPECT_EQ(runner.plans()[0].rows.front().position, 0);
  EXPECT_EQ(runner.plans()[1].rows.back().position, 31);
  EXPECT_EQ(driver->position(2), 32);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(SessionDriverTest, DecodesEverySessionWithTwoStepsInFlight) {
  FakeStepRunner runner;
  auto driver = SessionDriver::Create(&runner, Sessions(3));
  const auto seconds = driver->Decode(2, 5);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_THAT(seconds->seconds, SizeIs(5));
  EXPECT_THAT(seconds->seconds, Each(Ge(0)));
  // What the runner says of every step.
  EXPECT_THAT(seconds->device_seconds,
              ElementsAreArray({.001, .001, .001, .001, .001}));
  const std::vector<StepPlan> plans = runner.plans();
  ASSERT_EQ(plans.size(), 2u + 5u);
  EXPECT_THAT(PositionsOf(plans[2], 0), ElementsAre(32));
  EXPECT_THAT(PositionsOf(plans[6], 1), ElementsAre(36));
  EXPECT_THAT(PositionsOf(plans[6], 2), IsEmpty());
  EXPECT_EQ(plans[3].rows[0].token_id, kLastSampled);
  EXPECT_EQ(plans[3].rows[0].kind, RowKind::kDecode);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(SessionDriverTest, SessionsGoOnWhereTheyAre) {
  FakeStepRunner runner;
  auto driver = SessionDriver::Create(&runner, Sessions(2));
  ASSERT_TRUE(driver->Decode(1, 3).ok());
  ASSERT_TRUE(driver->Decode(2, 1).ok());
  EXPECT_EQ(driver->position(0), 36);
  EXPECT_EQ(driver->position(1), 33);
  const StepPlan last = runner.plans().back();
  EXPECT_THAT(PositionsOf(last, 0), ElementsAre(35));
  EXPECT_THAT(PositionsOf(last, 1), ElementsAre(32));
  EXPECT_NE(last.rows[1].token_id, kLastSampled);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(SessionDriverTest, StartsAtAPositionWithTheMemoryBeforeIt) {
  FakeStepRunner runner;
  DriverOptions options = Sessions(1);
  options.start_position = 10'000'000;
  const auto driver = SessionDriver::Create(&runner, options);
  EXPECT_EQ(driver->position(0), 10'000'000);
  EXPECT_EQ(runner.plans()[0].rows.front().position, 10'000'000 - 32);
}

TEST(SessionDriverTest, FeedsSegmentsThatTheRunnerTakes) {
  FakeStepRunner runner;
  auto driver = SessionDriver::Create(&runner, Sessions(1));
  const auto seconds = driver->Feed(20, 8, RowKind::kScore);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_THAT(*seconds, SizeIs(3));  // 8 + 8 + 4
  EXPECT_THAT(runner.plans().back().rows, SizeIs(4));
  EXPECT_EQ(runner.plans().back().rows[0].kind, RowKind::kScore);
  EXPECT_THAT(*driver->Feed(20, 512, RowKind::kPrefill), SizeIs(2));
  EXPECT_EQ(driver->position(0), 32 + 40);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(SessionDriverTest, ScoresSegmentsOfAllStreamsInAsFewStepsAsFit) {
  FakeStepRunnerOptions small = {.slots = 5};
  small.max_rows = 40;  // three streams of 12 rows
  FakeStepRunner runner(small);
  auto driver = SessionDriver::Create(&runner, Sessions(5));
  const size_t filled = runner.plans().size();
  const ScoreWork work = {.streams = 5, .segment_rows = 12};
  EXPECT_EQ(StreamsOfAPlan(work, runner.info()), 3);
  const auto times = driver->Score(work, 2);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(times->seconds, SizeIs(4));
  const std::vector<StepPlan> plans = runner.plans();
  ASSERT_EQ(plans.size(), filled + 4);
  EXPECT_THAT(plans[filled].rows, SizeIs(36));
  EXPECT_THAT(plans[filled + 1].rows, SizeIs(24));
  EXPECT_EQ(plans[filled + 1].rows[0].slot, 3);
  EXPECT_EQ(plans[filled + 1].rows[0].kind, RowKind::kScore);
  EXPECT_EQ(PositionsOf(plans[filled + 2], 2).front(), 32 + 12);
  EXPECT_EQ(driver->position(4), 32 + 24);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(SessionDriverTest, APlanHasOneStreamAtLeastAndNoMoreThanThereAre) {
  RunnerInfo info;
  info.max_rows = 100;
  EXPECT_EQ(StreamsOfAPlan({.streams = 8, .segment_rows = 128}, info), 1);
  EXPECT_EQ(StreamsOfAPlan({.streams = 8, .segment_rows = 1}, info), 8);
}

TEST(IdleShareTest, IsWhatStepsLeaveOfTheTimeAfterTheFirstOne) {
  // 0.2 + 0.3 + 0.4 of 0.25 + 0.35 + 0.4 seconds.
  EXPECT_NEAR(*IdleShare({{9, 0.25, 0.35, 0.4}, {5, 0.2, 0.3, 0.4}}), 0.1,
              1e-12);
  EXPECT_EQ(IdleShare({{0.1}, {0.1}}), std::nullopt);
  EXPECT_EQ(IdleShare({{0.1, 0.1}, {0, 0}}), std::nullopt);
  EXPECT_EQ(IdleShare({}), std::nullopt);
}

TEST(SessionDriverTest, TokensComeFromTheHeadButForTheTailsShare) {
  FakeStepRunner runner;  // 50 ids
  DriverOptions options = Sessions(1);
  options.head_ids = 10;
  const auto tail_ids_with = [&](double share) {
    options.tail_share = share;
    FakeStepRunner fresh;
    auto driver = SessionDriver::Create(&fresh, options);
    EXPECT_TRUE(driver->Feed(1000, 16, RowKind::kPrefill).ok());
    int tails = 0;
    for (const StepPlan& plan : fresh.plans()) {
      for (const StepRow& row : plan.rows) tails += row.token_id >= 10;
    }
    return tails;
  };
  EXPECT_EQ(tail_ids_with(0), 0);
  EXPECT_EQ(tail_ids_with(1), 1032);
  EXPECT_NEAR(tail_ids_with(0.2), 206, 60);
}

TEST(SessionDriverTest, ErrorsOfStepsAndRowsAreReturned) {
  FakeStepRunner runner;
  auto driver = SessionDriver::Create(&runner, Sessions(1));
  runner.FailRow(0, 33);
  EXPECT_FALSE(driver->Decode(1, 3).ok());
  FakeStepRunner broken;
  broken.FailStep(0, absl::InternalError("gone"));
  EXPECT_EQ(SessionDriver::Create(&broken, Sessions(1)).status(),
            absl::InternalError("gone"));
}

}  // namespace
}  // namespace txl
