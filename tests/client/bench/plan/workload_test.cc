#include "client/bench/plan/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace txl::bench {
namespace {

using ::testing::Each;
using ::testing::Lt;

TEST(PlanTurn, AsksForWhatTheWorkloadSays) {
  Workload workload;
  workload.prompt_tokens = Distribution::Fixed(100);
  workload.max_tokens = Distribution::Fixed(9);
  workload.temperature = 0.5;
  workload.tokens_per_message = 4;
  const TurnPlan plan = PlanTurn(workload, 7, 0, 0);
  EXPECT_EQ(plan.request.tokens().ids_size(), 100);
  EXPECT_THAT(plan.request.tokens().ids(), Each(Lt(7u)));
  EXPECT_EQ(plan.request.stop().max_tokens(), 9);
  EXPECT_TRUE(plan.request.stop().ignore_end_token());
  EXPECT_EQ(plan.request.sampling().temperature(), 0.5);
  EXPECT_TRUE(plan.request.sampling().has_seed());
  EXPECT_EQ(plan.request.output().max_tokens_per_message(), 4u);
  EXPECT_EQ(plan.request.session_id(), "");
  EXPECT_EQ(plan.cancel_after_tokens, -1);
  EXPECT_FALSE(plan.slow_reader);
}

TEST(PlanTurn, IsAFunctionOfSeedConversationAndTurn) {
  const Workload workload;
  Workload reseeded;
  reseeded.seed = uint64_t{1} << 40;
  const auto bytes = [](const Workload& from, int64_t conversation,
                        int64_t turn) {
    return PlanTurn(from, 256, conversation, turn).request.SerializeAsString();
  };
  EXPECT_EQ(bytes(workload, 3, 1), bytes(workload, 3, 1));
  const std::set<std::string> different = {
      bytes(workload, 3, 1), bytes(workload, 4, 1), bytes(workload, 3, 2),
      bytes(workload, 4, 0), bytes(reseeded, 3, 1)};
  EXPECT_EQ(different.size(), 5u);
}

TEST(PlanTurn, DrawsLengthsOfItsDistributions) {
  Workload workload;
  workload.prompt_tokens = *Distribution::Parse("uniform:1:20");
  workload.max_tokens = *Distribution::Parse("lognormal:50:1:200");
  std::set<int> prompts;
  std::set<int> answers;
  for (int64_t i = 0; i < 500; ++i) {
    const TurnPlan plan = PlanTurn(workload, 256, i, 0);
    prompts.insert(plan.request.tokens().ids_size());
    answers.insert(plan.request.stop().max_tokens());
  }
  EXPECT_EQ(prompts.size(), 20u);
  EXPECT_EQ(*prompts.begin(), 1);
  EXPECT_EQ(*prompts.rbegin(), 20);
  EXPECT_GT(answers.size(), 80u);
  EXPECT_GE(*answers.begin(), 1);
  EXPECT_EQ(*answers.rbegin(), 200);
}

TEST(PlanTurn, TakesThePromptsInTurn) {
  Workload workload = {.prompts = {{"one", {}}, {"", {5, 6}}}};
  EXPECT_EQ(PlanTurn(workload, 256, 0, 0).request.text(), "one");
  const TurnPlan second = PlanTurn(workload, 256, 1, 0);
  EXPECT_THAT(second.request.tokens().ids(), ::testing::ElementsAre(5, 6));
  EXPECT_EQ(PlanTurn(workload, 256, 2, 0).request.text(), "one");
  EXPECT_EQ(PlanTurn(workload, 256, 1, 1).request.text(), "one");
}

TEST(PlanTurn, CancelsAndReadsSlowlyInTheSharesAsked) {
  Workload workload;
  workload.cancel_share = 0.25;
  workload.slow_share = 0.1;
  int64_t cancels = 0;
  int64_t slow = 0;
  constexpr int64_t kTurns = 4000;
  for (int64_t i = 0; i < kTurns; ++i) {
    const TurnPlan plan = PlanTurn(workload, 256, i, 0);
    cancels += plan.cancel_after_tokens >= 0;
    slow += plan.slow_reader;
    EXPECT_LT(plan.cancel_after_tokens, 128);
  }
  EXPECT_NEAR(cancels, 1000, 5 * std::sqrt(kTurns * 0.25 * 0.75));
  EXPECT_NEAR(slow, 400, 5 * std::sqrt(kTurns * 0.1 * 0.9));
}

TEST(PlanTurn, SharesDoNotChangeWhatIsAsked) {
  Workload workload;
  const std::string before =
      PlanTurn(workload, 256, 7, 0).request.SerializeAsString();
  workload.cancel_share = 0.5;
  workload.slow_share = 0.5;
  EXPECT_EQ(PlanTurn(workload, 256, 7, 0).request.SerializeAsString(), before);
}

TEST(PlanTurns, AreAtLeastOneAndAsDistributed) {
  Workload workload;
  EXPECT_EQ(PlanTurns(workload, 0), 1);
  workload.turns = Distribution::Fixed(0);
  EXPECT_EQ(PlanTurns(workload, 0), 1);
  workload.turns = *Distribution::Parse("uniform:2:4");
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 100; ++i) seen.insert(PlanTurns(workload, i));
  EXPECT_EQ(seen, (std::set<int64_t>{2, 3, 4}));
  EXPECT_EQ(PlanTurns(workload, 9), PlanTurns(workload, 9));
}

TEST(PlanThinkSeconds, DrawsAnewForEachTurn) {
  Workload workload;
  workload.think_seconds = *Distribution::Parse("exponential:3");
  EXPECT_NE(PlanThinkSeconds(workload, 1, 1), PlanThinkSeconds(workload, 1, 2));
  EXPECT_EQ(PlanThinkSeconds(workload, 1, 1), PlanThinkSeconds(workload, 1, 1));
}

TEST(ParseLimits, ReadsEachNameWithItsUnit) {
  const auto limits =
      ParseLimits({"ttft=200ms", "itl=0.05s", "tpot=20000us", "e2e=1m"});
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_DOUBLE_EQ(limits->time_to_first_token, 0.2);
  EXPECT_DOUBLE_EQ(limits->inter_token, 0.05);
  EXPECT_DOUBLE_EQ(limits->per_token, 0.02);
  EXPECT_DOUBLE_EQ(limits->end_to_end, 60);
  EXPECT_TRUE(limits->any());
}

TEST(ParseLimits, OfNothingAreNone) {
  const auto limits = ParseLimits({});
  ASSERT_TRUE(limits.ok());
  EXPECT_FALSE(limits->any());
  EXPECT_EQ(limits->end_to_end, Limits::kNone);
}

TEST(ParseLimits, NamesWhatItCannotRead) {
  for (const char* text : {"", "ttft", "ttft=", "ttft=5", "ttft=-1s", "ttft=0s",
                           "ttft=inf", "speed=1s", "=1s"}) {
    const absl::Status status = ParseLimits({text}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(std::string(status.message()).find("ttft=200ms"),
              std::string::npos);
  }
  EXPECT_FALSE(ParseLimits({"e2e=1s", "e2e=2s"}).ok());
}

}  // namespace

}  // namespace txl::bench
