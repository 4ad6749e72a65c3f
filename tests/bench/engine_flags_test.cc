#include "tests/bench/engine_flags.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

StepRunnerOptions RunnerOf(const EngineOptions& options, int sessions) {
  const absl::StatusOr<StepRunnerOptions> runner =
      EngineRunnerOptions(options, sessions);
  EXPECT_TRUE(runner.ok()) << runner.status();
  return runner.value_or(StepRunnerOptions());
}

TEST(EngineRunnerOptionsTest, DecodingTakesASlotAndARowOfEverySession) {
  const StepRunnerOptions runner = RunnerOf({}, 128);
  EXPECT_EQ(runner.slots, 128);
  EXPECT_EQ(runner.max_rows, 128);
  EXPECT_EQ(RunnerOf({}, 8).max_rows, 64);  // segments that fill memories
}

TEST(EngineRunnerOptionsTest, APromptTakesASegmentOfOneSlot) {
  EngineOptions options;
  options.prefill_rows = 4096;
  const StepRunnerOptions runner = RunnerOf(options, 32);
  EXPECT_EQ(runner.slots, 1);
  EXPECT_EQ(runner.spare_rows, 512);
  EXPECT_EQ(runner.max_rows, 512);
}

TEST(EngineRunnerOptionsTest, ScoringTakesASegmentOfEverySessionThatFits) {
  EngineOptions options;
  options.score_rows = 128;
  const StepRunnerOptions all = RunnerOf(options, 32);
  EXPECT_EQ(all.slots, 32);
  EXPECT_EQ(all.spare_rows, 128);
  EXPECT_EQ(all.max_rows, 4096);
  EXPECT_EQ(RunnerOf(options, 33).max_rows, 4096);
  EXPECT_EQ(RunnerOf(options, 2).max_rows, 256);
}

TEST(EngineRunnerOptionsTest, SlotsAreAsManyAsSaidOrAsFit) {
  EngineOptions options;
  options.slots = "200";
  EXPECT_EQ(RunnerOf(options, 32).slots, 200);
  EXPECT_EQ(RunnerOf(options, 32).max_rows, 64);
  options.slots = "auto";
  EXPECT_EQ(RunnerOf(options, 32).slots, 0);
  for (const char* wrong : {"31", "many", "-1"}) {
    options.slots = wrong;
    EXPECT_EQ(EngineRunnerOptions(options, 32).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace txl
