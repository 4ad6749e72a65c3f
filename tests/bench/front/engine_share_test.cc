#include "tests/bench/front/engine_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_step_runner.h"

namespace txl {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(EngineShareTest, MeasuresBothOnOneRunner) {
  FakeStepRunner runner;
  StreamLoad load = {.sessions = 3, .steps = 20, .prompt_tokens = 32};
  const auto share = MeasureEngineShare(load, {}, &runner);
  ASSERT_TRUE(share.ok()) << share.status();
  EXPECT_THAT(share->before.seconds, SizeIs(21));
  EXPECT_THAT(share->after.seconds, SizeIs(21));
  EXPECT_EQ(share->streams.tokens, 60);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(EngineShareLineTest, SharesAreOfTheMeanBeforeAndAfter) {
  StreamLoad load = {.sessions = 10, .steps = 2};
  EngineShare share;
  share.before.seconds = {9, 0.1, 0.1};   // 100 tokens/s
  share.after.seconds = {9, 0.05, 0.05};  // 200 tokens/s
  share.streams.tokens = 20;
  share.streams.time = absl::Milliseconds(200);
  share.streams.processor_seconds = 0.001;
  share.streams.step_seconds = {0.1, 0.1};
  const nlohmann::ordered_json line = EngineShareLine(load, share);
  EXPECT_DOUBLE_EQ(line["engine_tokens_per_second"], 150);
  EXPECT_DOUBLE_EQ(line["scheduler_tokens_per_second"], 100);
  EXPECT_DOUBLE_EQ(line["share_of_engine"], 0.666667);
  EXPECT_DOUBLE_EQ(line["processor_microseconds_per_token"], 50);
  EXPECT_DOUBLE_EQ(line["step_milliseconds"]["p50"], 100);
  EXPECT_FALSE(line.contains("step_milliseconds_beside"));
}

TEST(EngineShareLineTest, StatesStepsBesideAPrompt) {
  StreamLoad load = {.beside_tokens = 4096};
  EngineShare share;
  share.before.seconds = share.after.seconds = {1, 1};
  share.streams.tokens = 1;
  share.streams.time = absl::Seconds(1);
  share.streams.beside_seconds = {0.002, 0.004};
  const nlohmann::ordered_json line = EngineShareLine(load, share);
  EXPECT_EQ(line["beside_tokens"], 4096);
  EXPECT_DOUBLE_EQ(line["step_milliseconds_beside"]["p50"], 2);
  EXPECT_DOUBLE_EQ(line["step_milliseconds_beside"]["p99"], 4);
  EXPECT_EQ(line["step_milliseconds_beside"]["count"], 2);
}

}  // namespace
}  // namespace txl
