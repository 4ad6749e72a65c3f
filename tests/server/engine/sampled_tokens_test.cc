#include "server/engine/sampled_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

// A result in which the rows of `failed` failed.
StepResult ResultOf(const StepPlan& plan, const std::vector<size_t>& failed) {
  StepResult result;
  result.rows.resize(plan.rows.size());
  for (const size_t row : failed) {
    result.rows[row].status = absl::InternalError("not finite");
  }
  return result;
}

const StepPlan kBoth = {
    {Decode(0, 5, kLastSampled), Decode(1, 7, kLastSampled)}};

TEST(SampledTokensTest, WhatAStepSampledIsLostWithItForEveryStepBehindIt) {
  SampledTokens tokens(2);
  const StepPlan first = {{Decode(0, 4, 1), Decode(1, 6, 1)}};
  const auto none = tokens.Submitted(0, first);
  const auto second = tokens.Submitted(1, kBoth);
  EXPECT_THAT(tokens.Lost(first, none), ElementsAre(false, false));
  tokens.Collected(0, first, absl::InternalError("lost"));
  EXPECT_THAT(tokens.Lost(kBoth, second), ElementsAre(true, true));
}

TEST(SampledTokensTest, ARowThatFailedLosesTheTokenOfItsSlotOnly) {
  SampledTokens tokens(2);
  const StepPlan first = {{Decode(0, 4, 1), Decode(1, 6, 1)}};
  tokens.Submitted(0, first);
  const auto second = tokens.Submitted(1, kBoth);
  tokens.Collected(0, first, ResultOf(first, {1}));
  EXPECT_THAT(tokens.Lost(kBoth, second), ElementsAre(false, true));
}

TEST(SampledTokensTest, ALostTokenStaysLostUntilTheSlotSamplesAgain) {
  SampledTokens tokens(2);
  const StepPlan first = {{Decode(0, 4, 1)}};
  tokens.Submitted(0, first);
  tokens.Collected(0, first, absl::InternalError("lost"));
  const StepPlan prompt = {{Row(0, 4, RowKind::kPrefill, 1)}};
  tokens.Submitted(1, prompt);
  tokens.Collected(1, prompt, ResultOf(prompt, {}));
  EXPECT_THAT(tokens.Lost(kBoth, tokens.Submitted(2, kBoth)),
              ElementsAre(true, false));
  tokens.Collected(2, kBoth, ResultOf(kBoth, {0}));
  tokens.Submitted(3, first);
  tokens.Collected(3, first, ResultOf(first, {}));
  EXPECT_THAT(tokens.Lost(kBoth, tokens.Submitted(4, kBoth)),
              ElementsAre(false, false));
}

}  // namespace
}  // namespace txl
