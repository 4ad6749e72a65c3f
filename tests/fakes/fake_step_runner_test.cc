#include "tests/fakes/fake_step_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

StepRow Row(int32_t slot, int64_t position, RowKind kind, int32_t token) {
  StepRow row;
  row.slot = slot;
  row.position = position;
  row.kind = kind;
  row.token_id = token;
  return row;
}

StepRow Next(int32_t slot, int64_t position) {
  return Row(slot, position, RowKind::kDecode, kLastSampled);
}

// Feeds ids from position `begin` on, the last of them as a decoding row.
StepPlan Prompt(int32_t slot, const std::vector<int32_t>& ids,
                int64_t begin = 0) {
  StepPlan plan;
  for (const int32_t id : ids) {
    plan.rows.push_back(Row(slot, begin++, RowKind::kPrefill, id));
  }
  plan.rows.back().kind = RowKind::kDecode;
  return plan;
}

int32_t TokenOf(FakeStepRunner& runner, StepPlan plan) {
  const auto result = runner.Collect(runner.Submit(std::move(plan)));
  return result.ok() ? result->rows.back().token_id : -1;
}

TEST(FakeStepRunnerTest, GuessesAreVerifiedWhereItIsToldTo) {
  FakeStepRunner runner({.verifies_guesses = true});
  const std::vector<int32_t> ids = {3, 1, 4};
  const std::vector<int32_t> text = runner.Continue(ids, 4);
  runner.Clear(0);
  StepPlan plan = Prompt(0, ids);
  const auto decode = RowKind::kDecode;
  plan.rows.push_back(Row(0, 3, decode, text[0]));
  plan.rows.push_back(Row(0, 4, decode, (text[1] + 1) % 50));
  plan.rows.push_back(Row(0, 5, decode, text[2]));
  const auto result = runner.Collect(runner.Submit(plan));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->rows[3].token_id, text[1]);
  EXPECT_FALSE(result->rows[3].rejected);
  EXPECT_TRUE(result->rows[4].rejected);
  EXPECT_TRUE(result->rows[5].rejected);
  EXPECT_EQ(TokenOf(runner, {{Next(0, 4)}}), text[2]);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(FakeStepRunnerTest, TextsRepeatThemselvesWherePositionsDoNotCount) {
  FakeStepRunner runner({.window = 1, .by_position = false});
  const std::vector<int32_t> text = runner.Continue({7}, 120);
  // One of 50 ids, and what follows it, come again.
  std::vector<int32_t> later(text.begin() + 60, text.end());
  const auto again = std::find(later.begin() + 1, later.end(), later[0]);
  ASSERT_NE(again, later.end());
  EXPECT_EQ(again[1], later[1]);
}

TEST(FakeStepRunnerTest, TextFollowsFromTheIdsAlone) {
  FakeStepRunner runner;
  const std::vector<int32_t> ids = {3, 1, 4, 1, 5};
  const std::vector<int32_t> expected = runner.Continue(ids, 3);
  for (const int32_t slot : {0, 2}) {
    runner.Clear(slot);
    std::vector<int32_t> text = {TokenOf(runner, Prompt(slot, ids))};
    text.push_back(TokenOf(runner, {{Next(slot, 5)}}));
    text.push_back(TokenOf(runner, {{Next(slot, 6)}}));
    EXPECT_EQ(text, expected);
  }
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(FakeStepRunnerTest, TwoStepsInFlightGiveTheSameText) {
  FakeStepRunner runner;
  runner.Clear(0);
  const StepId first = runner.Submit(Prompt(0, {7, 8}));
  const StepId second = runner.Submit({{Next(0, 2)}});
  const std::vector<int32_t> expected = runner.Continue({7, 8}, 2);
  EXPECT_EQ(runner.Collect(first)->rows[1].token_id, expected[0]);
  EXPECT_EQ(runner.Collect(second)->rows[0].token_id, expected[1]);
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(FakeStepRunnerTest, OneOtherIdOrPlaceChangesTheDistribution) {
  const FakeStepRunner runner;
  const std::vector<float> here = runner.LogProbs({3, 1, 4});
  EXPECT_NE(here, runner.LogProbs({3, 2, 4}));
  EXPECT_NE(here, runner.LogProbs({3, 1, 4, 4}));
  EXPECT_NE(here, runner.LogProbs({1, 3, 4}));
}

TEST(FakeStepRunnerTest, OnlyTheWindowIsSeen) {
  FakeStepRunnerOptions options;
  options.mem_len = 2;
  options.window = 3;
  const FakeStepRunner runner(options);
  EXPECT_EQ(runner.LogProbs({9, 1, 2, 3}), runner.LogProbs({8, 1, 2, 3}));
  EXPECT_NE(runner.LogProbs({9, 1, 2}), runner.LogProbs({8, 1, 2}));
}

TEST(FakeStepRunnerTest, DiscardedRowsChangeNothing) {
  FakeStepRunner runner;
  runner.Clear(0);
  TokenOf(runner, Prompt(0, {3, 1}));
  TokenOf(runner, Prompt(0, {9, 9, 9}, 2));
  EXPECT_EQ(TokenOf(runner, Prompt(0, {4}, 2)), runner.NextToken({3, 1, 4}));
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(FakeStepRunnerTest, StatesMoveByImageAndCopy) {
  FakeStepRunner runner;
  runner.Clear(0);
  TokenOf(runner, Prompt(0, {3, 1, 4}));
  auto image = runner.Export(0, 3).get();
  ASSERT_TRUE(image.ok());
  EXPECT_TRUE(
      runner.Import(1, std::make_shared<StateImage>(*image)).get().ok());
  runner.Copy(0, 2);
  const int32_t expected = runner.NextToken({3, 1, 4, 2});
  EXPECT_EQ(TokenOf(runner, Prompt(1, {2}, 3)), expected);
  EXPECT_EQ(TokenOf(runner, Prompt(2, {2}, 3)), expected);
  EXPECT_THAT(runner.violations(), IsEmpty());
  image->data[0] ^= 1;
  EXPECT_FALSE(
      runner.Import(1, std::make_shared<StateImage>(*image)).get().ok());
}

TEST(FakeStepRunnerTest, MissingRowsAreViolations) {
  FakeStepRunner runner;
  runner.Clear(0);
  TokenOf(runner, Prompt(0, {5}, 3));  // nothing before position 3
  EXPECT_THAT(runner.violations(), Not(IsEmpty()));
}

TEST(FakeStepRunnerTest, BrokenPreconditionsAreViolations) {
  FakeStepRunner runner;
  runner.Clear(0);
  runner.Submit({{Row(0, 0, RowKind::kPrefill, 1)}});
  runner.Submit({{Row(0, 1, RowKind::kPrefill, 1)}});
  EXPECT_THAT(runner.violations(), IsEmpty());
  runner.Submit({{Row(9, 0, RowKind::kPrefill, 1)}});
  EXPECT_THAT(runner.violations(),
              ElementsAre(HasSubstr("in flight"), HasSubstr("slot 9")));
}

TEST(FakeStepRunnerTest, RowsThatNoRunnerTakesAreViolations) {
  FakeStepRunner runner;
  runner.Clear(0);
  runner.Submit(
      {{Row(0, 0, RowKind::kDecode, 1), Row(0, 1, RowKind::kPrefill, 2)}});
  runner.Submit({{Row(0, 2, RowKind::kPrefill, 3),
                  Row(0, 3, RowKind::kPrefill, kLastSampled)}});
  EXPECT_THAT(runner.violations(),
              ElementsAre(HasSubstr("decodes"), HasSubstr("last token")));
}

TEST(FakeStepRunnerTest, AHeldExportIsThatOfItsTime) {
  FakeStepRunner runner;
  runner.Clear(0);
  TokenOf(runner, Prompt(0, {3, 1, 4}));
  const StateImage expected = runner.Export(0, 3).get().value();
  runner.HoldExports();
  auto image = runner.Export(0, 3);
  runner.Clear(0);
  EXPECT_EQ(image.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  runner.ReleaseExports();
  EXPECT_EQ(image.get()->checksum, expected.checksum);
}

TEST(FakeStepRunnerTest, AHeldImportArrivesWhenAStepWaitsForIt) {
  FakeStepRunner runner;
  runner.Clear(0);
  TokenOf(runner, Prompt(0, {3, 1}));
  const auto image =
      std::make_shared<const StateImage>(runner.Export(0, 2).get().value());
  runner.HoldImports();
  auto waited = runner.Import(1, image);
  auto released = runner.Import(2, image);
  const auto is_there = [](const std::future<absl::Status>& import) {
    return import.wait_for(std::chrono::seconds(0)) ==
           std::future_status::ready;
  };
  EXPECT_FALSE(is_there(waited));
  EXPECT_EQ(TokenOf(runner, Prompt(1, {4}, 2)), runner.NextToken({3, 1, 4}));
  EXPECT_TRUE(is_there(waited));
  EXPECT_THAT(runner.calls(), Contains("wait 1"));
  EXPECT_FALSE(is_there(released));
  runner.ReleaseImports();
  EXPECT_TRUE(released.get().ok());
}

TEST(FakeStepRunnerTest, BannedIdsArePassedOverUntilTheirPosition) {
  FakeStepRunner runner;
  const int32_t best = runner.NextToken({6});
  SlotSampling sampling;
  sampling.banned_ids = {best};
  sampling.min_position = 2;
  runner.Clear(0);
  runner.Configure(0, sampling);
  EXPECT_EQ(TokenOf(runner, Prompt(0, {6})), runner.NextToken({6}, {best}));
  sampling.min_position = 1;  // the sampled token's own position
  runner.Configure(0, sampling);
  EXPECT_EQ(TokenOf(runner, Prompt(0, {6})), best);
}

TEST(FakeStepRunnerTest, ScoresReportTheTargetAndAlternatives) {
  FakeStepRunner runner;
  runner.Clear(0);
  StepRow row = Row(0, 0, RowKind::kScore, 6);
  row.score_target = 11;
  row.top_logprobs = 2;
  const auto result = runner.Collect(runner.Submit({{row}}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->rows[0].token_id, 11);
  EXPECT_EQ(result->rows[0].logprob, runner.LogProbs({6})[11]);
  ASSERT_EQ(result->rows[0].top_logprobs.size(), 2);
  EXPECT_EQ(result->rows[0].top_logprobs[0].token_id, runner.NextToken({6}));
}

TEST(FakeStepRunnerTest, InjectedFailuresHitWhatTheyName) {
  FakeStepRunner runner;
  runner.Clear(0);
  runner.FailRow(0, 1);
  runner.FailStep(2, absl::InternalError("boom"));
  runner.FailNextExport(absl::InternalError("no export"));
  runner.FailNextImport(absl::InternalError("no import"));
  TokenOf(runner, Prompt(0, {3}));
  const auto row = runner.Collect(runner.Submit(Prompt(0, {4}, 1)));
  ASSERT_TRUE(row.ok());
  EXPECT_FALSE(row->rows[0].status.ok());
  EXPECT_EQ(runner.Collect(runner.Submit(Prompt(0, {4}, 1))).status().message(),
            "boom");
  // The failed step's token is unknown.
  EXPECT_FALSE(
      runner.Collect(runner.Submit({{Next(0, 2)}}))->rows[0].status.ok());
  EXPECT_FALSE(runner.Export(0, 1).get().ok());
  auto image = runner.Export(0, 1).get();
  ASSERT_TRUE(image.ok());
  EXPECT_FALSE(
      runner.Import(0, std::make_shared<StateImage>(*image)).get().ok());
  EXPECT_TRUE(
      runner.Import(0, std::make_shared<StateImage>(*image)).get().ok());
  EXPECT_THAT(runner.violations(), IsEmpty());
}

TEST(FakeStepRunnerTest, CollectWaitsWhileHeld) {
  FakeStepRunner runner;
  runner.Clear(0);
  runner.Hold();
  const StepId step = runner.Submit(Prompt(0, {3}));
  std::thread device([&] { runner.Release(); });
  EXPECT_TRUE(runner.Collect(step).ok());
  device.join();
}

TEST(FakeStepRunnerTest, CallsAreRecordedInOrder) {
  FakeStepRunner runner;
  runner.Clear(1);
  runner.Configure(1, {});
  runner.Submit(Prompt(1, {3, 4}));
  runner.Copy(1, 2);
  runner.Export(1, 2);
  EXPECT_THAT(runner.calls(), ElementsAre("clear 1", "configure 1", "submit 0",
                                          "copy 1 2", "export 1 @2"));
  ASSERT_EQ(runner.plans().size(), 1);
  EXPECT_EQ(runner.plans()[0].rows.size(), 2);
}

}  // namespace
}  // namespace txl
