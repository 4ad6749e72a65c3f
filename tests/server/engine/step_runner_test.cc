// What every StepRunner promises (server/engine/step_runner.h).

#include "server/engine/step_runner.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/reference/network.h"
#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Greedy text by the paper's forward, one token per call.
std::vector<int32_t> ReferenceGreedy(const std::string& model,
                                     const std::vector<int32_t>& prompt,
                                     int count) {
  const GoldenCase golden = LoadGoldenCase(model, at::kDouble);
  const ReferenceNetwork network(golden.config, golden.weights);
  SegmentMemory memory = network.InitialMemory(1);
  std::vector<int32_t> text;
  for (size_t i = 0; i < prompt.size() + count - 1; ++i) {
    const int32_t id = i < prompt.size() ? prompt[i] : text[i - prompt.size()];
    const at::Tensor hidden =
        network.Forward(at::full({1, 1}, id, at::kLong), memory);
    if (i + 1 < prompt.size()) continue;
    text.push_back(static_cast<int32_t>(
        network.LogProbs(hidden[0][0]).argmax().item<int64_t>()));
  }
  return text;
}

struct Subject {
  RunnerKind kind;
  const char* model;

  friend void PrintTo(const Subject& subject, std::ostream* out) {
    *out << NameOf(subject.kind) << " " << subject.model;
  }
};

std::string TestName(const testing::TestParamInfo<Subject>& info) {
  std::string name =
      absl::StrCat(NameOf(info.param.kind), "_", info.param.model);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class StepRunnerTest : public testing::TestWithParam<Subject> {
 protected:
  StepRunnerTest()
      : golden_(LoadModel(GetParam().kind, GetParam().model)),
        prompt_(golden_.tokens.begin(), golden_.tokens.begin() + 11) {
    Make();
  }

  void TearDown() override {
    if (made_.control == nullptr) return;
    made_.runner.reset();
    EXPECT_THAT(made_.control->violations(), IsEmpty());
  }

  // A runner on golden_, its slots cleared and greedy.
  void Make() {
    made_ = MakeTestRunner(GetParam().kind, golden_);
    runner_ = made_.runner.get();
    for (int32_t slot = 0; slot < 3; ++slot) {
      runner_->Clear(slot);
      runner_->Configure(slot, Greedy());
    }
  }

  // Decodes from `first` at position 0 on: `count` tokens.
  std::vector<int32_t> Generate(int32_t slot, int32_t first, int count) {
    std::vector<int32_t> tokens;
    for (int64_t position = 0; position < count; ++position) {
      const int32_t input = position == 0 ? first : kLastSampled;
      tokens.push_back(OnlyToken(
          *runner_, runner_->Submit({{Decode(slot, position, input)}})));
    }
    return tokens;
  }

  RowResult RunRow(const StepRow& row) {
    auto result = RunPlan(*runner_, {{row}});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->rows[0] : RowResult();
  }

  GoldenCase golden_;
  std::vector<int32_t> prompt_;
  TestRunner made_;
  StepRunner* runner_ = nullptr;
};

void ExpectEqualRows(const RowResult& a, const RowResult& b) {
  EXPECT_TRUE(a.status.ok()) << a.status;
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.token_id, b.token_id);
  EXPECT_EQ(a.logprob, b.logprob);
}

void ExpectUnknownInput(const RowResult& row) {
  EXPECT_EQ(row.status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(row.status.message(), HasSubstr("unknown"));
}

TEST_P(StepRunnerTest, GreedyTextIsThatOfTheReference) {
  constexpr int kTokens = 40;
  std::vector<int32_t> text = {
      OnlyToken(*runner_, runner_->Submit(PromptPlan(1, prompt_)))};
  for (int64_t position = 11; text.size() < kTokens; ++position) {
    text.push_back(OnlyToken(*runner_, runner_->Submit(NextPlan(1, position))));
  }
  EXPECT_EQ(text, ReferenceGreedy(GetParam().model, prompt_, kTokens));
}

TEST_P(StepRunnerTest, TwoStepsInFlightGiveTheSameText) {
  constexpr int kTokens = 30;
  ASSERT_EQ(runner_->info().depth, 2);
  std::vector<int32_t> text;
  StepId older = runner_->Submit(PromptPlan(0, prompt_));
  for (int64_t position = 11; text.size() + 1 < kTokens; ++position) {
    const StepId newer = runner_->Submit(NextPlan(0, position));
    text.push_back(OnlyToken(*runner_, older));
    older = newer;
  }
  text.push_back(OnlyToken(*runner_, older));
  EXPECT_EQ(text, ReferenceGreedy(GetParam().model, prompt_, kTokens));
}

TEST_P(StepRunnerTest, ScoresAreTheOriginalsLogProbabilities) {
  const std::vector<int32_t>& ids = golden_.tokens;
  for (size_t begin = 0; begin + 1 < ids.size(); begin += 16) {
    StepPlan plan;
    const size_t end = std::min(begin + 16, ids.size() - 1);
    for (size_t t = begin; t < end; ++t) {
      plan.rows.push_back(
          Score(2, static_cast<int64_t>(t), ids[t], ids[t + 1]));
      plan.rows.back().top_logprobs = 3;
    }
    const auto result = RunPlan(*runner_, plan);
    ASSERT_TRUE(result.ok()) << result.status();
    for (size_t t = begin; t < end; ++t) {
      const RowResult& row = result->rows[t - begin];
      const at::Tensor expected = golden_.stepwise[t];
      EXPECT_EQ(row.token_id, ids[t + 1]);
      EXPECT_NEAR(row.logprob, expected[ids[t + 1]].item<double>(), 3e-5);
      ASSERT_EQ(row.top_logprobs.size(), 3);
      EXPECT_EQ(row.top_logprobs[0].token_id,
                expected.argmax().item<int64_t>());
      EXPECT_NEAR(row.top_logprobs[0].logprob, expected.max().item<double>(),
                  3e-5);
    }
  }
}

TEST_P(StepRunnerTest, CallsTakeEffectInTheirOrder) {
  const std::vector<int32_t> expected =
      ReferenceGreedy(GetParam().model, prompt_, 2);
  // Slot 0 is fed, copied while it holds the prompt, then cleared and fed
  // otherwise; nothing is waited for between.
  const StepId first = runner_->Submit(PromptPlan(0, prompt_));
  auto image = runner_->Export(0, 11);
  runner_->Copy(0, 1);
  runner_->Clear(0);
  const StepId second = runner_->Submit(
      {{Row(0, 0, RowKind::kPrefill, prompt_[3]), Decode(1, 11, expected[0])}});
  EXPECT_EQ(OnlyToken(*runner_, first), expected[0]);
  EXPECT_EQ(OnlyToken(*runner_, second), expected[1]);
  auto exported = image.get();
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->position, 11);
  auto imported = runner_->Import(2, Shared(*std::move(exported)));
  const StepId third = runner_->Submit({{Decode(2, 11, expected[0])}});
  EXPECT_EQ(OnlyToken(*runner_, third), expected[1]);
  EXPECT_TRUE(imported.get().ok());
}

TEST_P(StepRunnerTest, StepsAreCollectedInOrderAndOnce) {
  EXPECT_FALSE(runner_->Collect(0).ok());
  const StepId first = runner_->Submit({{Row(0, 0, RowKind::kPrefill, 1)}});
  const StepId second = runner_->Submit({{Row(0, 1, RowKind::kPrefill, 2)}});
  EXPECT_EQ(runner_->Collect(second).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(runner_->Collect(first).ok());
  EXPECT_FALSE(runner_->Collect(first).ok());
  EXPECT_TRUE(runner_->Collect(second).ok());
}

TEST_P(StepRunnerTest, UncollectedWorkDoesNotBlockTheEnd) {
  runner_->Submit({{Row(0, 0, RowKind::kPrefill, 1)}});
  auto image = runner_->Export(0, 1);
  made_.runner.reset();
  EXPECT_TRUE(image.get().ok());
}

TEST_P(StepRunnerTest, APlanThatBreaksTheRulesChangesNothing) {
  ASSERT_TRUE(RunRow(Decode(0, 0, 1)).status.ok());
  // In flight while the token is still on its way, too.
  const StepId broken =
      runner_->Submit({{Decode(0, 1, kLastSampled), Decode(9, 0, 1)}});
  const StepId next = runner_->Submit(NextPlan(0, 1));
  const auto failed = runner_->Collect(broken);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(failed.status().message(), HasSubstr("plan row 1: slot 9"));
  EXPECT_GE(OnlyToken(*runner_, next), 0);
}

TEST_P(StepRunnerTest, ATokenThatWasNeverSampledIsUnknown) {
  const auto result =
      RunPlan(*runner_, {{Row(0, 1, RowKind::kPrefill, kLastSampled),
                          Decode(0, 2, 3), Decode(1, 0, 4)}});
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectUnknownInput(result->rows[0]);
  ExpectUnknownInput(result->rows[1]);
  EXPECT_TRUE(result->rows[2].status.ok());
  ExpectUnknownInput(RunRow(Decode(0, 3, kLastSampled)));
}

TEST_P(StepRunnerTest, WhatWritesASlotForgetsItsToken) {
  Generate(0, 3, 2);
  const StateImage image = runner_->Export(0, 2).get().value();
  const auto forgets = [&](auto call) {
    Generate(1, 4, 2);
    call();
    ExpectUnknownInput(RunRow(Decode(1, 2, kLastSampled)));
  };
  forgets([&] { runner_->Clear(1); });
  forgets([&] { runner_->Copy(0, 1); });
  forgets([&] { EXPECT_TRUE(runner_->Import(1, Shared(image)).get().ok()); });
  forgets([&] { runner_->Configure(1, Greedy()); });
}

TEST_P(StepRunnerTest, ACopyHasTheRowsAndItsOwnSampling) {
  const std::vector<int32_t> tokens = Generate(0, 3, 6);
  SlotSampling without_best = Greedy();
  without_best.banned_ids = {RunRow(Decode(0, 6, tokens.back())).token_id};
  without_best.min_position = 8;
  runner_->Configure(1, without_best);
  runner_->Copy(0, 1);
  const RowResult original = RunRow(Decode(0, 6, tokens.back()));
  const RowResult other = RunRow(Decode(1, 6, tokens.back()));
  EXPECT_NE(other.token_id, original.token_id);
  ExpectEqualRows(RunRow(Score(1, 6, tokens.back(), original.token_id)),
                  original);
}

TEST_P(StepRunnerTest, AnImportedStateContinuesAsTheOriginal) {
  const std::vector<int32_t> tokens = Generate(0, 3, 6);
  const StateImage image = runner_->Export(0, 6).get().value();
  Generate(2, 9, 4);  // something to replace
  ASSERT_TRUE(runner_->Import(2, Shared(image)).get().ok());
  ExpectEqualRows(RunRow(Decode(2, 6, tokens.back())),
                  RunRow(Decode(0, 6, tokens.back())));
}

TEST_P(StepRunnerTest, ARefusedImageLeavesTheSlotRunning) {
  Generate(0, 3, 4);
  StateImage image = runner_->Export(0, 4).get().value();
  image.identity.fingerprint = "another";
  image.Seal();
  EXPECT_EQ(runner_->Import(0, Shared(image)).get().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(RunRow(Decode(0, 4, kLastSampled)).status.ok());
}

TEST_P(StepRunnerTest, SlotsAndPositionsThatDoNotExistAreRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(runner_->Export(3, 0).get().status().code(), invalid);
  EXPECT_EQ(runner_->Export(0, -1).get().status().code(), invalid);
  EXPECT_EQ(runner_->Import(-1, Shared(StateImage())).get().code(), invalid);
  runner_->Clear(3);
  runner_->Configure(-1, Greedy());
  runner_->Copy(0, 3);
  EXPECT_TRUE(RunRow(Decode(0, 0, 1)).status.ok());
}

TEST_P(StepRunnerTest, RowsWithoutOutputReportOnlyTheirStatus) {
  const auto result = RunPlan(*runner_, {{Row(0, 0, RowKind::kPrefill, 3),
                                          Row(1, 0, RowKind::kRebuild, 3),
                                          Row(2, 0, RowKind::kDerive, 0)}});
  ASSERT_TRUE(result.ok());
  for (const RowResult& row : result->rows) {
    EXPECT_TRUE(row.status.ok());
    EXPECT_EQ(row.token_id, -1);
    EXPECT_TRUE(row.top_logprobs.empty());
  }
}

TEST_P(StepRunnerTest, WhereNothingIsLeftTheRowFailsAlone) {
  SlotSampling nothing = Greedy();
  for (int32_t id = 0; id < golden_.config.vocab_size; ++id) {
    nothing.banned_ids.push_back(id);
  }
  nothing.min_position = 2;
  runner_->Configure(0, nothing);
  const auto result = RunPlan(*runner_, {{Decode(0, 0, 3), Decode(1, 0, 3)}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows[0].status, NothingToSample());
  EXPECT_TRUE(result->rows[1].status.ok());
  ExpectUnknownInput(RunRow(Decode(0, 1, kLastSampled)));
  // Position 2 is free again.
  EXPECT_TRUE(RunRow(Decode(0, 1, 4)).status.ok());
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepRunnerTest, testing::ValuesIn([] {
      std::vector<Subject> subjects;
      for (const RunnerKind kind :
           {RunnerKind::kTorch, RunnerKind::kNative, RunnerKind::kSampling}) {
        for (const char* model : {"kimi-char", "hf-adaptive", "labml-char"}) {
          subjects.push_back({kind, model});
        }
      }
      return subjects;
    }()),
    TestName);

// Ids below 50 are in bin 0 of this model, those from 50 to 89 in bin 1.
constexpr char kAdaptive[] = "kimi-adaptive-div2";
constexpr int32_t kBinOneId = 60;

// A model whose numbers overflow on ids of bin 1.
class OverflowTest : public StepRunnerTest {
 protected:
  OverflowTest() {
    at::Tensor& words = golden_.weights.embedding[1].w;
    const bool is_double = words.scalar_type() == at::kDouble;
    words = at::full_like(words, is_double ? std::numeric_limits<double>::max()
                                           : std::numeric_limits<float>::max());
    Make();
  }
};

TEST_P(OverflowTest, ARowThatIsNotFiniteFailsAlone) {
  const RowResult expected = RunRow(Decode(2, 0, 7));
  runner_->Clear(2);
  const auto result =
      RunPlan(*runner_, {{Decode(0, 0, kBinOneId), Decode(2, 0, 7)}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(
      result->rows[0].status,
      absl::InternalError("the model's numbers at position 0 are not finite"));
  ExpectEqualRows(result->rows[1], expected);
  // The slot is good again once it is cleared.
  runner_->Clear(0);
  ExpectEqualRows(RunRow(Decode(0, 0, 7)), expected);
}

TEST_P(OverflowTest, WhoFeedsTheTokenOfAFailedRowFailsToo) {
  const StepId first =
      runner_->Submit({{Decode(0, 0, kBinOneId), Decode(1, 0, 7)}});
  const StepId second = runner_->Submit(
      {{Decode(0, 1, kLastSampled), Decode(1, 1, kLastSampled)}});
  EXPECT_FALSE(runner_->Collect(first)->rows[0].status.ok());
  const auto result = runner_->Collect(second);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectUnknownInput(result->rows[0]);
  EXPECT_TRUE(result->rows[1].status.ok());
  // Configured, cleared and told what to feed the slot decodes again.
  runner_->Configure(0, Greedy());
  runner_->Clear(0);
  EXPECT_TRUE(RunRow(Decode(0, 0, 7)).status.ok());
  EXPECT_TRUE(RunRow(Decode(0, 1, kLastSampled)).status.ok());
}

INSTANTIATE_TEST_SUITE_P(
    Runners, OverflowTest,
    testing::Values(Subject{RunnerKind::kTorch, kAdaptive},
                    Subject{RunnerKind::kNative, kAdaptive},
                    Subject{RunnerKind::kSampling, kAdaptive}),
    TestName);

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
