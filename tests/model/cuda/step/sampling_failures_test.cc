// Numbers that ran away, and rows that have no token to be fed.

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "tests/model/cuda/step/sampling_driver.h"

namespace txl {
namespace {

// A token whose embedding is no number.
class SamplingFailureTest : public testing::Test {
 protected:
  static constexpr int32_t kBad = 59;

  static CudaStepOptions Options() {
    CudaStepOptions options;
    options.slots = 2;
    options.spare_rows = 64;
    options.max_rows = 32;
    return options;
  }
  std::unique_ptr<SamplingStep> Make() const {
    return MakeSamplingStep(model_, Options());
  }

  std::unique_ptr<SamplingStep> MakeBad() const {
    RandomCase model = PromiseCase();
    model.weights.embedding[2].w = model.weights.embedding[2].w.clone();
    model.weights.embedding[2].w[kBad - 41].fill_(
        std::numeric_limits<float>::quiet_NaN());
    return MakeSamplingStep(model, Options());
  }

  const RandomCase model_ = PromiseCase();
};

TEST_F(SamplingFailureTest, AFailedRowAndWhatFollowsItAreToldOthersGoOn) {
  auto healthy = Make();
  auto step = MakeBad();
  const std::vector<std::vector<StepRow>> steps = {
      {Sample(0, 0, kBad), Sample(1, 0, 3)},
      {Row(0, 1, kLastSampled, RowKind::kPrefill), Score(0, 2, 5, 6),
       Sample(0, 3, 8), Sample(1, 1, kLastSampled)},
      {Sample(0, 4, kLastSampled), Sample(1, 2, kLastSampled)}};
  std::vector<SampledRows> found, expected;
  for (auto* runner : {step.get(), healthy.get()}) {
    auto& results = runner == step.get() ? found : expected;
    for (const int32_t slot : {0, 1}) {
      runner->Configure(slot, SamplingParams(), {});
    }
    const auto first = runner->Queue(steps[0]);
    const auto second = runner->Queue(steps[1]);
    results.push_back(first->Collect());
    const auto third = runner->Queue(steps[2]);
    results.push_back(second->Collect());
    results.push_back(third->Collect());
  }
  EXPECT_EQ(found[0].rows[0].status, NotFinite(0));
  EXPECT_EQ(found[0].rows[0].token_id, -1);
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(found[1].rows[r].status, UnknownInput()) << r;
    EXPECT_EQ(expected[1].rows[r].status, absl::OkStatus()) << r;
  }
  EXPECT_EQ(found[1].rows[1].token_id, -1);
  EXPECT_EQ(found[2].rows[0].status, UnknownInput());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].rows.back().token_id, expected[i].rows.back().token_id);
    EXPECT_EQ(found[i].rows.back().logprob, expected[i].rows.back().logprob);
  }
}

TEST_F(SamplingFailureTest, ASlotIsWellAgainOnceItIsCleared) {
  auto healthy = Make();
  auto step = MakeBad();
  step->Configure(0, SamplingParams(), {});
  RunRows(*step, {Sample(0, 0, kBad)});
  step->Clear(0);
  std::vector<int32_t> ids = model_.tokens;
  for (int32_t& id : ids) id = id == kBad ? 1 : id;
  const auto rows = ScoringRows(0, ids, 0, 20);
  EXPECT_TRUE(
      SameSampledRows({RunRows(*step, rows)}, {RunRows(*healthy, rows)}));
}

TEST_F(SamplingFailureTest, NothingLeftIsTold) {
  auto step = Make();
  std::vector<int32_t> all(60);
  std::iota(all.begin(), all.end(), 0);
  SampleContext context;
  context.banned_ids = all;
  context.position = 100;
  step->Configure(0, Greedy(), context);
  const RowResult row = RunRows(*step, {Sample(0, 0, 3)}).rows[0];
  EXPECT_EQ(row.status, NothingToSample());
  EXPECT_EQ(row.token_id, -1);
}

}  // namespace
}  // namespace txl
