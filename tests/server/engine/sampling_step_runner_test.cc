// What is the SamplingStepRunner's own: errors of the device, what the device
// cannot sample, waiting. What every runner does is in step_runner_test.cc,
// and on the same calls as another runner in same_calls_test.cc.

#include "server/engine/sampling_step_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::runtime_error kLost("device lost");

class SamplingStepRunnerTest : public testing::Test {
 protected:
  SamplingStepRunnerTest()
      : golden_(LoadModel(RunnerKind::kSampling, "kimi-adaptive-div2")),
        made_(MakeTestRunner(RunnerKind::kSampling, golden_)),
        runner_(*made_),
        control_(*made_.control) {
    for (int32_t slot = 0; slot < 3; ++slot) {
      runner_.Clear(slot);
      runner_.Configure(slot, Greedy());
    }
    // All of it is done: what is told to throw from now on is a later call.
    runner_.Export(0, 0).wait();
  }

  void TearDown() override { EXPECT_THAT(control_.violations(), IsEmpty()); }

  std::vector<RowResult> RunRows(const StepPlan& plan) {
    const auto result = RunPlan(runner_, plan);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->rows
                       : std::vector<RowResult>(plan.rows.size());
  }
  RowResult RunRow(const StepRow& row) { return RunRows({{row}})[0]; }

  // A runner whose calls never fail, with the same rows in its slots.
  TestRunner Untouched() {
    TestRunner other = MakeTestRunner(RunnerKind::kSampling, golden_);
    for (int32_t slot = 0; slot < 3; ++slot) {
      other->Clear(slot);
      other->Configure(slot, Greedy());
    }
    return other;
  }

  const GoldenCase golden_;
  const TestRunner made_;
  StepRunner& runner_;
  StepControl& control_;
};

// Queue and Collect: the step fails, the slots are as they were, the tokens are
// unknown, also to the step that was in flight behind it.
class FailedStepTest : public SamplingStepRunnerTest,
                       public testing::WithParamInterface<StepCall> {};

TEST_P(FailedStepTest, IsItsStatusAndLosesItsTokens) {
  RunRows({{Decode(0, 0, 1), Decode(1, 0, 2), Decode(2, 0, 3)}});
  control_.Throw(GetParam(), kLost);
  const StepId failing =
      runner_.Submit({{Decode(0, 1, 4), Row(1, 1, RowKind::kPrefill, 5)}});
  const StepId behind =
      runner_.Submit({{Decode(0, 2, kLastSampled), Decode(1, 1, kLastSampled),
                       Decode(2, 1, kLastSampled)}});
  EXPECT_EQ(runner_.Collect(failing).status(),
            absl::InternalError("step: device lost"));
  const auto result = runner_.Collect(behind);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows[0].status, UnknownInput());
  EXPECT_TRUE(result->rows[1].status.ok()) << "did not sample in that step";
  EXPECT_TRUE(result->rows[2].status.ok()) << "was not in that step";
  EXPECT_EQ(RunRow(Decode(0, 3, kLastSampled)).status, UnknownInput());
}

TEST_P(FailedStepTest, LeavesTheRowsBeforeIt) {
  const TestRunner other = Untouched();
  const StepPlan first = {{Decode(0, 0, 1), Decode(1, 0, 2)}};
  RunRows(first);
  RunPlan(*other, first).IgnoreError();
  control_.Throw(GetParam(), kLost);
  EXPECT_FALSE(RunPlan(runner_, {{Decode(0, 1, 3), Decode(1, 1, 4)}}).ok());
  // The same positions again, with other ids.
  const StepPlan again = {{Decode(0, 1, 5), Decode(1, 1, 6)}};
  ExpectSameResults(RunPlan(runner_, again), RunPlan(*other, again));
  // A token that is there again may be fed.
  EXPECT_TRUE(RunRow(Decode(0, 2, kLastSampled)).status.ok());
}

TEST_P(FailedStepTest, SaysWhenMemoryRanOut) {
  control_.Throw(GetParam(), std::bad_alloc());
  EXPECT_EQ(RunPlan(runner_, {{Decode(0, 0, 1)}}).status(),
            absl::ResourceExhaustedError("step: memory is exhausted"));
  EXPECT_TRUE(RunRow(Decode(0, 0, 1)).status.ok());
}

INSTANTIATE_TEST_SUITE_P(Calls, FailedStepTest,
                         testing::Values(StepCall::kQueue, StepCall::kCollect),
                         [](const auto& info) {
                           return info.param == StepCall::kQueue ? "Queue"
                                                                 : "Collect";
                         });

// Clear, Copy, Import: the slot's rows are unknown until one of them goes well.
TEST_F(SamplingStepRunnerTest, ASlotThatCouldNotBeWrittenRunsNothing) {
  RunRows({{Decode(0, 0, 1)}});
  const StateImage image = runner_.Export(0, 1).get().value();
  const auto import = [&] { runner_.Import(1, Shared(image)).wait(); };
  struct Case {
    StepCall call;
    std::function<void()> write;
    std::string message;
  };
  const std::vector<Case> cases = {
      {StepCall::kClear, [&] { runner_.Clear(1); },
       "clearing a slot: device lost"},
      {StepCall::kCopy, [&] { runner_.Copy(0, 1); },
       "copying a slot: device lost"},
      {StepCall::kImport, import, "importing a state: device lost"},
      {StepCall::kBring, import, "importing a state: device lost"},
  };
  for (const Case& broken : cases) {
    control_.Throw(broken.call, kLost);
    broken.write();
    const absl::Status lost = absl::InternalError(broken.message);
    const std::vector<RowResult> rows =
        RunRows({{Row(1, 1, RowKind::kPrefill, 2), Decode(1, 2, 3),
                  Row(2, 0, RowKind::kDerive, 0), Decode(0, 1, 4)}});
    EXPECT_EQ(rows[0].status, lost);
    EXPECT_EQ(rows[1].status, lost);
    EXPECT_TRUE(rows[3].status.ok()) << rows[3].status;
    EXPECT_EQ(RunRow(Row(1, 0, RowKind::kDerive, 0)).status, lost);
    EXPECT_EQ(runner_.Export(1, 1).get().status(), lost);
    runner_.Copy(1, 2);
    EXPECT_EQ(RunRow(Decode(2, 1, 3)).status, lost);
    runner_.Clear(2);
    broken.write();
    EXPECT_TRUE(RunRow(Decode(1, 1, 2)).status.ok()) << broken.message;
  }
}

TEST_F(SamplingStepRunnerTest, AnImportSaysThatItFailed) {
  RunRows({{Decode(0, 0, 1)}});
  const StateImage image = runner_.Export(0, 1).get().value();
  for (const StepCall call : {StepCall::kImport, StepCall::kBring}) {
    control_.Throw(call, kLost);
    EXPECT_EQ(runner_.Import(1, Shared(image)).get(),
              absl::InternalError("importing a state: device lost"));
    EXPECT_TRUE(runner_.Import(1, Shared(image)).get().ok());
  }
}

TEST_F(SamplingStepRunnerTest, OtherSlotsRunWhileAStateIsImported) {
  RunRows({{Decode(0, 0, 1)}});
  const StateImage image = runner_.Export(0, 1).get().value();
  control_.Hold(StepCall::kBring);
  auto import = runner_.Import(1, Shared(image));
  const RowResult beside = RunRow(Decode(0, 1, 2));
  EXPECT_TRUE(beside.status.ok()) << beside.status;
  EXPECT_EQ(import.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  const StepId step = runner_.Submit({{Decode(1, 1, 2)}});  // waits for it
  control_.Release(StepCall::kBring);
  const auto result = runner_.Collect(step);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows[0].token_id, beside.token_id);
  EXPECT_TRUE(import.get().ok());
}

// The step itself may have to.
TEST_F(SamplingStepRunnerTest, ClearsASlotWithoutWaitingForItsImport) {
  RunRows({{Decode(0, 0, 1)}});
  const StateImage image = runner_.Export(0, 1).get().value();
  control_.Hold(StepCall::kBring);
  auto import = runner_.Import(1, Shared(image));
  runner_.Clear(1);
  const RowResult cleared = RunRow(Decode(1, 0, 1));
  EXPECT_TRUE(cleared.status.ok()) << cleared.status;
  control_.Release(StepCall::kBring);
  EXPECT_TRUE(import.get().ok());
}

// A slot is cleared when its rows are read: nothing is written for a state that
// moves in instead.
TEST_F(SamplingStepRunnerTest, DoesNotClearASlotThatIsOverwritten) {
  const int32_t fed = RunRow(Decode(0, 0, 1)).token_id;
  const StateImage image = runner_.Export(0, 1).get().value();
  const int32_t expected = RunRow(Decode(0, 1, fed)).token_id;
  control_.Throw(StepCall::kClear, kLost);  // the first that is really done
  runner_.Clear(1);
  runner_.Copy(0, 1);
  EXPECT_EQ(RunRow(Decode(1, 1, fed)).token_id, expected);
  runner_.Clear(1);
  runner_.Import(1, Shared(image)).wait();
  EXPECT_EQ(RunRow(Decode(1, 1, fed)).token_id, expected);
  runner_.Clear(1);
  EXPECT_EQ(RunRow(Decode(1, 0, 1)).status,
            absl::InternalError("clearing a slot: device lost"));
}

TEST_F(SamplingStepRunnerTest, AStateThatIsRefusedLeavesTheSlotCleared) {
  const int32_t expected = RunRow(Decode(2, 0, 1)).token_id;
  RunRows({{Decode(1, 0, 3)}});
  StateImage image = runner_.Export(1, 1).get().value();
  image.identity.d_model += 1;
  runner_.Clear(1);
  EXPECT_FALSE(runner_.Import(1, Shared(image)).get().ok());
  EXPECT_EQ(RunRow(Decode(1, 0, 1)).token_id, expected);
}

// What moves out of a slot that was only cleared is the start state.
TEST_F(SamplingStepRunnerTest, AClearedSlotIsExportedAsCleared) {
  const TestRunner other = Untouched();
  RunRows({{Decode(0, 0, 1)}});
  runner_.Clear(0);
  EXPECT_EQ(runner_.Export(0, 0).get().value().data,
            other->Export(0, 0).get().value().data);
}

TEST_F(SamplingStepRunnerTest, AnExportThatFailsLeavesTheSlot) {
  const TestRunner other = Untouched();
  RunRows({{Decode(0, 0, 1)}});
  RunPlan(*other, {{Decode(0, 0, 1)}}).IgnoreError();
  for (const StepCall call : {StepCall::kExport, StepCall::kTake}) {
    control_.Throw(call, kLost);
    EXPECT_EQ(runner_.Export(0, 1).get().status(),
              absl::InternalError("exporting a state: device lost"));
  }
  EXPECT_TRUE(runner_.Export(0, 1).get().ok());
  const StepPlan next = {{Decode(0, 1, kLastSampled)}};
  ExpectSameResults(RunPlan(runner_, next), RunPlan(*other, next));
}

TEST_F(SamplingStepRunnerTest, ASlotThatCouldNotBeConfiguredOnlyFeeds) {
  control_.Throw(StepCall::kConfigure, kLost);
  runner_.Configure(0, Greedy());
  const std::vector<RowResult> rows =
      RunRows({{Row(0, 0, RowKind::kPrefill, 1), Score(0, 1, 2, 3),
                Decode(0, 2, 3), Decode(1, 0, 1)}});
  EXPECT_TRUE(rows[0].status.ok());
  EXPECT_TRUE(rows[1].status.ok());
  EXPECT_EQ(rows[2].status,
            absl::InternalError("configuring a slot: device lost"));
  EXPECT_TRUE(rows[3].status.ok());
  EXPECT_EQ(RunRow(Decode(0, 3, kLastSampled)).status, UnknownInput());
  runner_.Configure(0, Greedy());
  EXPECT_TRUE(RunRow(Decode(0, 2, 3)).status.ok());
}

TEST_F(SamplingStepRunnerTest, ASlotIsConfiguredBeforeItDecodes) {
  const TestRunner fresh = MakeTestRunner(RunnerKind::kSampling, golden_);
  fresh->Clear(0);
  const auto result = RunPlan(*fresh, {{Decode(0, 0, 1)}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->rows[0].status.code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(fresh.control->violations(), IsEmpty());
}

TEST_F(SamplingStepRunnerTest, WhatTheDeviceCannotSampleFailsAlone) {
  SlotSampling sampling = Greedy();
  sampling.banned_ids.resize(2000);
  runner_.Configure(0, sampling);
  StepRow many = Score(1, 0, 1, 2);
  many.top_logprobs = SamplingStep::kMostTopLogprobs + 1;
  const std::vector<RowResult> rows =
      RunRows({{Decode(0, 0, 1), many, Decode(2, 0, 1)}});
  EXPECT_EQ(rows[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(rows[0].status.message(), HasSubstr("2000 banned ids"));
  EXPECT_EQ(rows[1].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(rows[2].status.ok());
  runner_.Configure(0, Greedy());
  EXPECT_TRUE(RunRow(Decode(0, 1, 1)).status.ok());
}

TEST_F(SamplingStepRunnerTest, SubmitDoesNotWaitForTheDevice) {
  control_.Hold(StepCall::kQueue);
  const StepId first = runner_.Submit({{Decode(0, 0, 1)}});
  runner_.Clear(1);
  auto image = runner_.Export(1, 0);
  const StepId second = runner_.Submit({{Decode(0, 1, kLastSampled)}});
  control_.Release(StepCall::kQueue);  // would hang before, had one waited
  EXPECT_GE(OnlyToken(runner_, first), 0);
  EXPECT_GE(OnlyToken(runner_, second), 0);
  EXPECT_TRUE(image.get().ok());
}

TEST_F(SamplingStepRunnerTest, AStateOnItsWayKeepsNoStepWaiting) {
  const StepId first = runner_.Submit({{Decode(0, 0, 1), Decode(1, 0, 2)}});
  const StateImage expected = runner_.Export(0, 1).get().value();
  control_.Hold(StepCall::kTake);
  auto image = runner_.Export(0, 1);
  auto other = runner_.Export(1, 1);
  // The slot is another session's before its state has arrived.
  runner_.Clear(0);
  const StepId second =
      runner_.Submit({{Decode(0, 0, 9), Decode(1, 1, kLastSampled)}});
  OnlyToken(runner_, first);
  OnlyToken(runner_, second);
  EXPECT_EQ(image.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  control_.Release(StepCall::kTake);
  const StateImage arrived = image.get().value();
  EXPECT_EQ(arrived.data, expected.data);
  EXPECT_EQ(arrived.checksum, expected.checksum);
  EXPECT_TRUE(other.get().ok());
}

TEST_F(SamplingStepRunnerTest, TheTimeOfAStepIsTheDevices) {
  EXPECT_EQ(RunPlan(runner_, {{Decode(0, 0, 1)}})->device_seconds,
            HostSamplingOptions().device_seconds);
  // Nothing of it ran.
  EXPECT_EQ(
      RunPlan(runner_, {{Row(0, 0, RowKind::kDerive, 0)}})->device_seconds, 0);
}

TEST_F(SamplingStepRunnerTest, AScoreEvaluatesTheClusterOfItsTargetOnly) {
  // Targets in bin 0, cluster 0, cluster 0, cluster 2.
  const auto result =
      RunPlan(runner_, {{Score(0, 0, 1, 7), Score(0, 1, 1, 60),
                         Score(1, 0, 1, 89), Score(2, 0, 1, 150)}});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->softmax_tails.size(), 3);
  const std::vector<int64_t> computed = {2, 0, 1};
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(result->softmax_tails[c].computed, computed[c]);
    EXPECT_EQ(result->softmax_tails[c].skipped, 4 - computed[c]);
  }
}

// Does what it is told, once.
class ToldArrival final : public StateArrival {
 public:
  explicit ToldArrival(std::function<absl::Status()> bring)
      : bring_(std::move(bring)) {}
  absl::Status Bring() override {
    EXPECT_FALSE(std::exchange(was_brought_, true));
    return bring_();
  }

 private:
  const std::function<absl::Status()> bring_;
  bool was_brought_ = false;
};

std::unique_ptr<StateArrival> Told(std::function<absl::Status()> bring) {
  return std::make_unique<ToldArrival>(std::move(bring));
}

TEST(ImageArrivalTest, WhatArrivedIsNeitherRefusedNorBroken) {
  ImageArrival arrival(Told([] { return absl::OkStatus(); }));
  for (int i = 0; i < 2; ++i) {
    const ImageArrival::Outcome outcome = arrival.Bring();
    EXPECT_TRUE(outcome.refused.ok());
    EXPECT_TRUE(outcome.broken.ok());
    EXPECT_TRUE(outcome.status().ok());
  }
}

TEST(ImageArrivalTest, ARefusedImageBreaksNothing) {
  const absl::Status refused = absl::DataLossError("state image: checksum");
  ImageArrival arrival(Told([&] { return refused; }));
  for (int i = 0; i < 2; ++i) {
    const ImageArrival::Outcome outcome = arrival.Bring();
    EXPECT_EQ(outcome.refused, refused);
    EXPECT_TRUE(outcome.broken.ok());
    EXPECT_EQ(outcome.status(), refused);
  }
}

TEST(ImageArrivalTest, AnErrorOfTheDeviceIsNotTheImagesFault) {
  ImageArrival arrival(
      Told([]() -> absl::Status { throw std::runtime_error("device lost"); }));
  for (int i = 0; i < 2; ++i) {
    const ImageArrival::Outcome outcome = arrival.Bring();
    EXPECT_TRUE(outcome.refused.ok());
    EXPECT_EQ(outcome.broken,
              absl::InternalError("importing a state: device lost"));
    EXPECT_EQ(outcome.status(), outcome.broken);
  }
}

TEST(ImageArrivalTest, ManyThreadsWaitForOne) {
  const absl::Status refused = absl::InvalidArgumentError("another model's");
  ImageArrival arrival(Told([&] {
    std::this_thread::yield();
    return refused;
  }));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(arrival.Bring().status(), refused); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

}  // namespace txl
