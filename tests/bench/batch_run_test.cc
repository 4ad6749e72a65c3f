#include "tests/bench/batch_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_step_runner.h"

namespace txl {
namespace {

using testing::Each;
using testing::IsEmpty;
using testing::SizeIs;

BatchOptions Small() {
  return {.sequences = 3, .prompt_tokens = 5, .generated_tokens = 4};
}

std::vector<size_t> RowsOfPlans(const FakeStepRunner& runner) {
  std::vector<size_t> rows;
  for (const StepPlan& plan : runner.plans()) rows.push_back(plan.rows.size());
  return rows;
}

TEST(BatchRunTest, WithMemoryEveryTokenIsFedOnce) {
  FakeStepRunner runner;
  const auto tokens = GenerateWithMemory(&runner, Small());
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(*tokens, SizeIs(3));
  EXPECT_THAT(*tokens, Each(SizeIs(4)));
  EXPECT_EQ(RowsOfPlans(runner), (std::vector<size_t>{15, 3, 3, 3}));
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(BatchRunTest, WithoutItSequencesAreFedWholeForEveryToken) {
  FakeStepRunner runner;
  ASSERT_TRUE(GenerateRecomputing(&runner, Small()).ok());
  EXPECT_EQ(RowsOfPlans(runner), (std::vector<size_t>{15, 18, 21, 24}));
  EXPECT_EQ(Small().fed_tokens() * 3, 24);
  for (const StepPlan& plan : runner.plans()) {
    EXPECT_EQ(plan.rows.front().position, 0);
    EXPECT_EQ(plan.rows.back().kind, RowKind::kDecode);
    EXPECT_EQ(plan.rows.front().kind, RowKind::kPrefill);
  }
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(BatchRunTest, BothGenerateTheGreedyContinuation) {
  FakeStepRunner with_memory, recomputing;
  const auto tokens = GenerateWithMemory(&with_memory, Small());
  EXPECT_EQ(*tokens, *GenerateRecomputing(&recomputing, Small()));
  std::vector<int32_t> prompt;
  for (int i = 0; i < 5; ++i) {
    prompt.push_back(with_memory.plans()[0].rows[i].token_id);
  }
  const std::vector<int32_t> whole = with_memory.Continue(prompt, 4);
  EXPECT_TRUE(std::equal(whole.end() - 4, whole.end(), tokens->at(0).begin()));
}

TEST(BatchRunTest, ErrorsAreReturned) {
  FakeStepRunner runner;
  runner.FailStep(1, absl::InternalError("gone"));
  EXPECT_EQ(GenerateWithMemory(&runner, Small()).status(),
            absl::InternalError("gone"));
  FakeStepRunner other;
  other.FailRow(1, 5);
  EXPECT_FALSE(GenerateWithMemory(&other, Small()).ok());
}

}  // namespace
}  // namespace txl
