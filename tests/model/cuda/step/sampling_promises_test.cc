// What callers of the step that samples may rely on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "model/cuda/kernels/sampling_slots.h"
#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/sampling_driver.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CudaStepOptions Options() {
  CudaStepOptions options;
  options.slots = 4;
  options.spare_rows = 64;
  options.max_rows = 48;
  return options;
}

class SamplingPromisesTest : public testing::Test {
 protected:
  std::unique_ptr<SamplingStep> Make() const {
    return MakeSamplingStep(model_, Options());
  }

  const RandomCase model_ = PromiseCase();  // bins end at 20, 41 and 60
};

TEST_F(SamplingPromisesTest, ParametersHoldFromTheNextStepOn) {
  auto step = Make();
  step->Configure(0, Always(7), {});
  const auto first = step->Queue({Sample(0, 0, 3)});
  step->Configure(0, Always(50), {});
  const auto second = step->Queue({Sample(0, 1, 3)});
  EXPECT_EQ(first->Collect().rows[0].token_id, 7);
  EXPECT_EQ(second->Collect().rows[0].token_id, 50);
}

// More than are on their way at once, while two steps run.
TEST_F(SamplingPromisesTest, ManyParametersMayBeSetAtOnce) {
  auto step = Make();
  constexpr int kMany = 130;
  std::vector<int32_t> tokens;
  std::unique_ptr<QueuedStep> last_step;
  for (int i = 0; i < 3; ++i) {
    for (int c = 0; c < kMany; ++c) {
      step->Configure(c % 3, Always((20 * i + c) % 60), {});
    }
    auto queued = step->Queue({Sample((kMany - 1) % 3, i, 3)});
    if (i > 0) tokens.push_back(last_step->Collect().rows[0].token_id);
    last_step = std::move(queued);
  }
  tokens.push_back(last_step->Collect().rows[0].token_id);
  const int last = kMany - 1;
  EXPECT_THAT(tokens,
              ElementsAre(last % 60, (20 + last) % 60, (40 + last) % 60));
}

TEST_F(SamplingPromisesTest, WithoutParametersAScoreNeedsNone) {
  auto step = Make();
  const SampledRows sampled = RunRows(*step, {Score(0, 0, 3, 55)});
  EXPECT_EQ(sampled.rows[0].status, absl::OkStatus());
  EXPECT_EQ(sampled.rows[0].token_id, 55);
  EXPECT_LT(sampled.rows[0].logprob, 0);
}

TEST_F(SamplingPromisesTest, BansHoldUpToTheirPosition) {
  auto step = Make();
  SampleContext context;
  const std::vector<int32_t> banned = {7};
  context.banned_ids = banned;
  context.position = 3;
  SamplingParams params = Always(7);
  params.logit_bias[8] = 50;
  step->Configure(0, params, context);
  std::vector<int32_t> tokens;
  for (int64_t t = 0; t < 4; ++t) {
    tokens.push_back(RunRows(*step, {Sample(0, t, 3)}).rows[0].token_id);
  }
  EXPECT_THAT(tokens, ElementsAre(8, 8, 7, 7));  // at positions 1, 2, 3, 4
}

TEST_F(SamplingPromisesTest, RowsWithoutOutputComeBackToo) {
  auto step = Make();
  const SampledRows none = RunRows(*step, {Row(1, 0, 5, RowKind::kPrefill),
                                           Row(1, 1, 6, RowKind::kPrefill)});
  ASSERT_EQ(none.rows.size(), 2u);
  EXPECT_EQ(none.rows[1].status, absl::OkStatus());
  EXPECT_EQ(none.rows[1].token_id, -1);
  EXPECT_THAT(none.evaluated, ElementsAre(0, 0));
  EXPECT_GE(none.device_seconds, 0);
}

TEST_F(SamplingPromisesTest, OnlyWhoAsksGetsTheBestWords) {
  auto step = Make();
  std::vector<StepRow> rows = {Score(0, 0, 3, 1), Score(1, 0, 3, 1),
                               Sample(2, 0, 3)};
  rows[1].top_logprobs = 20;
  rows[2].top_logprobs = 1;
  step->Configure(2, Always(9), {});
  const SampledRows sampled = RunRows(*step, rows);
  EXPECT_TRUE(sampled.rows[0].top_logprobs.empty());
  ASSERT_EQ(sampled.rows[1].top_logprobs.size(), 20u);
  ASSERT_EQ(sampled.rows[2].top_logprobs.size(), 1u);
  const TokenLogprob& best = sampled.rows[1].top_logprobs[0];
  EXPECT_EQ(sampled.rows[2].top_logprobs[0].token_id, best.token_id);
  EXPECT_NE(best.token_id, 9);  // the model's own words
  std::set<int32_t> ids;
  for (size_t i = 0; i < 20; ++i) {
    ids.insert(sampled.rows[1].top_logprobs[i].token_id);
    if (i > 0) {
      EXPECT_GE(sampled.rows[1].top_logprobs[i - 1].logprob,
                sampled.rows[1].top_logprobs[i].logprob);
    }
  }
  EXPECT_EQ(ids.size(), 20u);
}

TEST_F(SamplingPromisesTest, CountsTheRowsThatAClusterWasEvaluatedFor) {
  auto step = Make();
  std::vector<StepRow> rows;
  const int32_t targets[] = {0, 19, 20, 40, 41, 59, 59};
  for (int64_t t = 0; t < 7; ++t) rows.push_back(Score(0, t, 3, targets[t]));
  EXPECT_THAT(RunRows(*step, rows).evaluated, ElementsAre(2, 3));
}

// Which rows need a cluster is no matter of how the others are computed.
TEST_F(SamplingPromisesTest, RowsThatNeedAClusterDoNotChangeEachOther) {
  std::vector<float> seen;
  for (const bool others : {false, true}) {
    auto step = Make();
    std::vector<StepRow> rows;
    for (int64_t t = 0; t < 40; ++t) {
      rows.push_back(Score(0, t, model_.tokens[t], others ? 45 : 0));
    }
    rows[17].score_target = 45;
    const SampledRows sampled = RunRows(*step, rows);
    EXPECT_EQ(sampled.evaluated[1], others ? 40 : 1);
    seen.push_back(sampled.rows[17].logprob);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_F(SamplingPromisesTest, StepsOfSeveralPassesHaveTheSameNumbers) {
  auto whole = Make();
  CudaSamplingOptions small;
  small.words_bytes = 0;  // 16 rows at a time
  auto parts = MakeSamplingStep(model_, Options(), small);
  std::vector<StepRow> rows = ScoringRows(0, model_.tokens, 0, 40);
  rows[39].kind = RowKind::kDecode;
  for (size_t r = 0; r < rows.size(); r += 7) rows[r].top_logprobs = 5;
  for (size_t r = 0; r < rows.size(); r += 5) {
    rows[r].logprob_ids = std::make_shared<const std::vector<int32_t>>(
        std::vector<int32_t>{45, static_cast<int32_t>(r), 45});
  }
  for (auto* step : {whole.get(), parts.get()}) {
    step->Configure(0, SamplingParams(), {});
  }
  for (const size_t count : {40, 17, 16}) {
    const std::vector<StepRow> some(rows.end() - count, rows.end());
    const SampledRows expected = RunRows(*whole, some);
    const SampledRows found = RunRows(*parts, some);
    ExpectSameRows(found.rows, expected.rows, 2e-5, "in parts");
    EXPECT_EQ(found.evaluated, expected.evaluated);
  }
}

TEST_F(SamplingPromisesTest, WhatWasNeverSampledIsAnUnknownInput) {
  auto step = Make();
  step->Configure(0, Greedy(), {});
  const auto status = [&](int64_t position) {
    return RunRows(*step, {Sample(0, position, kLastSampled)}).rows[0].status;
  };
  EXPECT_EQ(status(0), UnknownInput());
  EXPECT_EQ(RunRows(*step, {Sample(0, 0, 3)}).rows[0].status, absl::OkStatus());
  EXPECT_EQ(status(1), absl::OkStatus());
  step->Configure(0, Greedy(), {});
  EXPECT_EQ(status(2), UnknownInput());
}

TEST_F(SamplingPromisesTest, WhoeverWritesASlotForgetsItsLastToken) {
  auto step = Make();
  const std::vector<std::function<void()>> writes = {
      [&] { step->Clear(0); }, [&] { step->Copy(1, 0); },
      [&] {
        step->Import(
            0, std::make_shared<const StateImage>(step->Export(1, 1)->Take()));
      }};
  for (const auto& write : writes) {
    for (const int32_t slot : {0, 1}) {
      step->Clear(slot);
      step->Configure(slot, Always(7), {});
    }
    const auto first = step->Queue({Sample(0, 0, 3), Sample(1, 0, 3)});
    write();
    const auto second =
        step->Queue({Sample(0, 1, kLastSampled), Sample(1, 1, kLastSampled)});
    EXPECT_EQ(first->Collect().rows[0].token_id, 7);
    const SampledRows then = second->Collect();
    EXPECT_EQ(then.rows[0].status, UnknownInput());
    EXPECT_EQ(then.rows[1].status, absl::OkStatus());
    // How it samples stays.
    EXPECT_EQ(RunRows(*step, {Sample(0, 1, 3)}).rows[0].token_id, 7);
  }
}

TEST_F(SamplingPromisesTest, ARefusedImageForgetsNothing) {
  auto step = Make();
  step->Configure(0, Always(7), {});
  RunRows(*step, {Sample(0, 0, 3)});
  StateImage damaged = step->Export(0, 1)->Take();
  damaged.data[0] ^= 1;
  const auto import =
      step->Import(0, std::make_shared<const StateImage>(damaged));
  const SampledRows then = RunRows(*step, {Sample(0, 1, kLastSampled)});
  EXPECT_EQ(then.rows[0].status, absl::OkStatus());
  EXPECT_EQ(import->Bring().code(), absl::StatusCode::kDataLoss);
}

// Collect may come from another thread, as soon as a step is queued.
TEST_F(SamplingPromisesTest, AnotherThreadMayCollect) {
  constexpr int kSteps = 12;
  const auto rows = [&](int64_t t) {
    return std::vector<StepRow>{Sample(0, t, t == 0 ? 3 : kLastSampled)};
  };
  std::vector<std::vector<SampledRows>> results(2);
  for (const bool apart : {false, true}) {
    auto step = Make();
    step->Configure(0, SamplingParams(), {});
    std::counting_semaphore<SamplingStep::kDepth> room(SamplingStep::kDepth);
    std::counting_semaphore<kSteps> queued(0);
    std::array<std::unique_ptr<QueuedStep>, kSteps> steps;
    const auto collect = [&] {
      for (int i = 0; i < kSteps; ++i) {
        queued.acquire();
        results[apart].push_back(steps[i]->Collect());
        room.release();
      }
    };
    std::thread collector;
    if (apart) collector = std::thread(collect);
    for (int64_t t = 0; t < kSteps; ++t) {
      if (apart) room.acquire();
      steps[t] = step->Queue(rows(t));
      if (apart) queued.release();
      if (!apart) results[apart].push_back(steps[t]->Collect());
    }
    if (apart) collector.join();
  }
  EXPECT_TRUE(SameSampledRows(results[0], results[1]));
}

TEST_F(SamplingPromisesTest, ListsThatAreTooLongAreNotForTheDevice) {
  auto step = Make();
  SamplingParams params;
  const int64_t most = cuda::SamplingLimits().banned;
  EXPECT_TRUE(step->CanSample(params, most));
  EXPECT_FALSE(step->CanSample(params, most + 1));
  params.penalty_window = 5000;
  EXPECT_TRUE(step->CanSample(params, 0));
  params.presence_penalty = 1;
  EXPECT_FALSE(step->CanSample(params, 0));
}

TEST_F(SamplingPromisesTest, TooManyClustersAreRefused) {
  ModelConfig config = model_.config;
  config.cutoffs.clear();
  for (int64_t end = 3; end < 54; end += 3) config.cutoffs.push_back(end);
  config.tie_projs.assign(config.n_bins(), false);
  ASSERT_EQ(config.n_bins(), 18);
  const RandomCase model = CaseOf(config, 1, 5);
  EXPECT_THAT(CreateCudaSamplingStep(config, model.weights, Options())
                  .status()
                  .message(),
              HasSubstr("17 clusters"));
}

TEST_F(SamplingPromisesTest, RefusesTheOptionsThatThePlainStepRefuses) {
  CudaStepOptions options = Options();
  options.max_rows = 0;
  EXPECT_THAT(CreateCudaSamplingStep(model_.config, model_.weights, options)
                  .status()
                  .message(),
              HasSubstr("max_rows"));
}

TEST_F(SamplingPromisesTest, TellsWhatItTakesBeforeItTakesIt) {
  const CudaSamplingBytes bytes =
      CudaSamplingStepBytes(model_.config, Options());
  auto step = Make();
  EXPECT_EQ(bytes.slot, step->BytesPerSlot());
  EXPECT_GT(bytes.slot,
            CudaStepSlotBytes(model_.config, 64, NumberFormat::kF32));
  EXPECT_EQ(step->ring().mem_len, 21);
  EXPECT_EQ(step->identity().kernel, "native-cuda-absorbed-weights-f32");
  // Words of 48 rows, and four states of two layers of 21 rows of 64 numbers.
  const int64_t words = 48 * (64 * 3 * 4);
  const int64_t states = int64_t{kStatesOnTheirWay} * 2 * 21 * 64 * 4;
  EXPECT_GE(bytes.shared, words + states);
  CudaSamplingOptions small;
  small.words_bytes = 0;
  const CudaSamplingBytes fewer =
      CudaSamplingStepBytes(model_.config, Options(), small);
  EXPECT_EQ((bytes.shared - states) / 3, fewer.shared - states);
}

}  // namespace
}  // namespace txl
