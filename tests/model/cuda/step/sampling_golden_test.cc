// Every public checkpoint family: log-probabilities that the sampling step
// reports equal those of the original code fed token by token.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/cuda/kernels/sampling.h"
#include "tests/model/cuda/step/sampling_driver.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

class SamplingGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(SamplingGoldenTest, ScoresAndBestWordsEqualTheOriginal) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
  CudaStepOptions options;
  options.spare_rows = 32;
  options.max_rows = 32;
  auto step = MakeSamplingStep(golden, options);
  const at::Tensor expected = golden.stepwise.contiguous();
  const int64_t vocabulary = golden.config.vocab_size;
  const auto check = [&](int64_t position, int32_t id, float logprob) {
    const double original =
        expected.const_data_ptr<double>()[position * vocabulary + id];
    EXPECT_NEAR(logprob, original, golden.tolerance)
        << "token " << id << " behind position " << position;
  };
  // More than any case's memory in prompts, then token by token.
  constexpr int64_t kPrompt = 52;
  constexpr int64_t kLength = 56;
  const std::vector<int32_t> ticks =
      TicksBefore(golden.config.beat_positions, golden.tokens);
  for (int64_t at = 0; at < kLength;) {
    const int64_t end = at < kPrompt ? at + 26 : at + 1;
    std::vector<StepRow> rows = ScoringRows(0, golden.tokens, at, end);
    for (StepRow& row : rows) {
      row.ticks = ticks[row.position];
      row.top_logprobs = static_cast<int32_t>(
          std::min<int64_t>(cuda::kMaxTopLogprobs, vocabulary));
    }
    const SampledRows scored = RunRows(*step, rows);
    for (size_t r = 0; r < rows.size(); ++r) {
      const RowResult& row = scored.rows[r];
      ASSERT_EQ(row.status, absl::OkStatus());
      check(rows[r].position, rows[r].score_target, row.logprob);
      ASSERT_EQ(static_cast<int32_t>(row.top_logprobs.size()),
                rows[r].top_logprobs);
      for (const TokenLogprob& best : row.top_logprobs) {
        check(rows[r].position, best.token_id, best.logprob);
      }
    }
    at = end;
  }
}

INSTANTIATE_TEST_SUITE_P(AllFamilies, SamplingGoldenTest,
                         testing::ValuesIn(GoldenCaseNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return GoldenParamName(info.param);
                         });

}  // namespace
}  // namespace txl
