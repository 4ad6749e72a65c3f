#include "client/cli/bench_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>

namespace txl::cli {
namespace {

using bench::ArrivalKind;
using bench::Mode;
using ::testing::HasSubstr;

// What a command line makes. REQUIRES: CLI11 takes it.
absl::StatusOr<BenchPlan> Plan(const std::string& line) {
  CLI::App program;
  BenchFlags flags;
  AddBenchFlags(program, &flags);
  program.parse(line);
  return MakeBenchPlan(flags);
}

std::string Refusal(const std::string& line) {
  const absl::Status status = Plan(line).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(status.message());
}

TEST(BenchFlags, AreAClosedLoopWithTheLibrarysDefaults) {
  const auto plan = Plan("");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const bench::RunOptions defaults;
  const bench::RunOptions& run = plan->load.run;
  EXPECT_EQ(run.mode, Mode::kClosed);
  EXPECT_EQ(run.streams, defaults.streams);
  EXPECT_EQ(run.arrivals, defaults.arrivals);
  EXPECT_EQ(run.drain_seconds, defaults.drain_seconds);
  EXPECT_EQ(run.max_running, defaults.max_running);
  EXPECT_EQ(run.workload.prompt_tokens.text(),
            defaults.workload.prompt_tokens.text());
  EXPECT_EQ(run.workload.max_tokens.text(),
            defaults.workload.max_tokens.text());
  EXPECT_EQ(run.workload.turns.text(), "1");
  EXPECT_EQ(run.workload.think_seconds.text(), "0");
  EXPECT_FALSE(plan->limits.any());
  EXPECT_TRUE(plan->rates.empty());
  EXPECT_FALSE(plan->search.has_value());
}

TEST(BenchFlags, WithARateAreAnOpenLoop) {
  const auto plan = Plan(
      "--rate 12.5 --arrivals constant --ramp 4 --ramp-from 2 --seconds 30 "
      "--warmup 5 --drain 7 --max-running 99 --connections 3 --threads 2 "
      "--timeout 9 --seed 11");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const bench::RunOptions& run = plan->load.run;
  EXPECT_EQ(run.mode, Mode::kOpen);
  EXPECT_EQ(run.rate.rate, 12.5);
  EXPECT_EQ(run.arrivals, ArrivalKind::kConstant);
  EXPECT_EQ(run.rate.ramp_seconds, 4);
  EXPECT_EQ(run.rate.ramp_from, 2);
  EXPECT_EQ(run.seconds, 30);
  EXPECT_EQ(run.warmup_seconds, 5);
  EXPECT_EQ(run.drain_seconds, 7);
  EXPECT_EQ(run.max_running, 99);
  EXPECT_EQ(plan->load.connections, 3);
  EXPECT_EQ(plan->load.threads, 2);
  EXPECT_EQ(plan->load.timeout_seconds, 9);
  EXPECT_EQ(run.workload.seed, 11u);
}

TEST(BenchFlags, DescribeTurnsAndClients) {
  const auto plan = Plan(
      "--prompt-tokens uniform:2:9 --max-tokens lognormal:40:1:100 --turns "
      "uniform:1:4 --think exponential:2.5 --cancel 0.1 --slow 0.2 "
      "--slow-read 0.5 --temperature 0 --tokens-per-message 8");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const bench::Workload& workload = plan->load.run.workload;
  EXPECT_EQ(workload.prompt_tokens.text(), "uniform:2:9");
  EXPECT_EQ(workload.max_tokens.highest(), 100);
  EXPECT_EQ(workload.turns.highest(), 4);
  EXPECT_EQ(workload.think_seconds.text(), "exponential:2.5");
  EXPECT_EQ(workload.cancel_share, 0.1);
  EXPECT_EQ(workload.slow_share, 0.2);
  EXPECT_EQ(plan->load.run.slow_read_seconds, 0.5);
  EXPECT_EQ(workload.temperature, 0);
  EXPECT_EQ(workload.tokens_per_message, 8);
}

TEST(BenchFlags, ReadPromptsAndLimits) {
  const std::string path = ::testing::TempDir() + "/bench-flags-prompts.txt";
  std::ofstream(path) << "one\ntwo\n";
  const auto plan =
      Plan("--prompts " + path + " --limit ttft=200ms --limit e2e=2s");
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->load.run.workload.prompts.size(), 2u);
  EXPECT_EQ(plan->load.run.workload.prompts[1].text, "two");
  EXPECT_EQ(plan->limits.time_to_first_token, 0.2);
  EXPECT_EQ(plan->limits.end_to_end, 2);
}

TEST(BenchFlags, ForSeveralRunsAreOpenLoops) {
  const auto rates = Plan("--rates 1,2.5,40");
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->load.run.mode, Mode::kOpen);
  EXPECT_EQ(rates->rates, (std::vector<double>{1, 2.5, 40}));

  const auto search = Plan(
      "--find-capacity --rate 3 --limit itl=50ms --tolerance 0.1 "
      "--max-trials 7");
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(search->load.run.mode, Mode::kOpen);
  ASSERT_TRUE(search->search.has_value());
  EXPECT_EQ(search->search->first_rate, 3);
  EXPECT_EQ(search->search->tolerance, 0.1);
  EXPECT_EQ(search->search->max_trials, 7);
}

TEST(BenchFlags, NameWhatTheyCannotRead) {
  EXPECT_THAT(Refusal("--prompt-tokens x"), HasSubstr("--prompt-tokens: 'x'"));
  EXPECT_THAT(Refusal("--max-tokens 0"), HasSubstr("--max-tokens: '0'"));
  EXPECT_THAT(Refusal("--turns uniform:0:3"), HasSubstr("--turns"));
  EXPECT_THAT(Refusal("--think fast"), HasSubstr("--think"));
  EXPECT_THAT(Refusal("--limit 5"), HasSubstr("--limit: '5'"));
  EXPECT_THAT(Refusal("--find-capacity"), HasSubstr("needs a --limit"));
  EXPECT_THAT(Refusal("--seconds 3 --warmup 4"), HasSubstr("--warmup"));
}

TEST(BenchFlags, NameAPromptFileWithoutPrompts) {
  const std::string path = ::testing::TempDir() + "/bench-flags-empty.jsonl";
  std::ofstream(path) << "{}\n";
  EXPECT_THAT(Refusal("--prompts " + path), HasSubstr("line 1"));
}

}  // namespace

}  // namespace txl::cli
