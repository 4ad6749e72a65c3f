#include "tests/bench/window_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/step_costs.h"
#include "tests/fakes/fake_step_runner.h"

namespace txl {
namespace {

using testing::IsEmpty;

TEST(WindowRunTest, AWindowIsFedFromNothingAndSampledOnce) {
  FakeStepRunner runner;
  ASSERT_TRUE(RecomputeWindow(&runner, 20, 8).ok());
  EXPECT_EQ(runner.calls()[0], "clear 0");
  const std::vector<StepPlan> plans = runner.plans();
  ASSERT_EQ(plans.size(), 3u);  // 8 + 8 + 4
  int64_t position = 0;
  for (const StepPlan& plan : plans) {
    for (const StepRow& row : plan.rows) {
      EXPECT_EQ(row.position, position++);
      EXPECT_EQ(row.kind == RowKind::kDecode, row.position == 19);
    }
  }
  EXPECT_EQ(position, 20);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(WindowRunTest, AttentionLengthIsWindowAndMemoryWithoutStartRows) {
  ModelConfig config;
  config.mem_len = 10;
  config.mem_init = MemoryInit::kZeros;
  const ModelConfig longer = WithAttentionLength(config, 800);
  EXPECT_EQ(longer.serving_window(), 800);
  EXPECT_EQ(longer.mem_len, 800);
  EXPECT_EQ(longer.mem_init, MemoryInit::kEmpty);
}

TEST(WindowRunTest, MeasuresBothModesOnOneRunner) {
  ModelConfig config;
  config.n_layer = config.n_head = 1;
  config.d_head = config.d_model = config.d_embed = config.d_inner = 8;
  config.vocab_size = 50;
  config = WithAttentionLength(config, 32);
  FakeStepRunner runner;  // the fake's memory is 32
  WindowOptions options = {.length = 32, .segment_rows = 16, .seconds = 1e-9};
  const auto measured = MeasureWindow(&runner, config, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->windows, 1);
  EXPECT_EQ(measured->scored_tokens, 16);
  EXPECT_GT(measured->window_seconds, 0);
  EXPECT_GT(measured->score_seconds, 0);
  EXPECT_EQ(measured->window_flops, PromptFlops(config, 0, 32));
  EXPECT_FALSE(measured->paper_ratio.has_value());
  // 2 to fill the memory, 1 of feeding, 1 of scoring, 2 of a window.
  EXPECT_EQ(runner.plans().size(), 6u);
  EXPECT_EQ(runner.plans()[3].rows[0].kind, RowKind::kScore);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(WindowRunTest, LineHasTheRatioBesideThePapers) {
  WindowMeasurement measured;
  measured.length = 800;
  measured.window_seconds = 2;
  measured.score_seconds = 0.004;
  measured.window_flops = 500e9;
  measured.prompt_flop_rate = 400e9;
  measured.paper_ratio = 363;
  MachinePeaks peaks;
  peaks.flops_per_second = 500e9;
  const nlohmann::ordered_json line = WindowLine(measured, peaks);
  EXPECT_EQ(line["attention_length"], 800);
  EXPECT_DOUBLE_EQ(line["ratio"], 500);
  EXPECT_DOUBLE_EQ(line["paper_ratio"], 363);
  EXPECT_DOUBLE_EQ(line["recomputing_milliseconds_per_token"], 2000);
  EXPECT_DOUBLE_EQ(line["scoring_milliseconds_per_token"], 4);
  EXPECT_DOUBLE_EQ(line["recomputing_gigaflops"], 250);
  EXPECT_DOUBLE_EQ(line["recomputing_share_of_prompt_rate"], 0.625);
  EXPECT_DOUBLE_EQ(line["recomputing_share_of_fma_peak"], 0.5);
  EXPECT_FALSE(WindowLine(measured, std::nullopt)
                   .contains("recomputing_share_of_fma_peak"));
}

}  // namespace
}  // namespace txl
