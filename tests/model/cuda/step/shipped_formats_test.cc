// The shipped model with weights and memories of 16 bits on a text, beside the
// native step for CPUs in float32: how far off, and how often another word is
// the most likely one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "tests/model/cuda/step/sampling_driver.h"
#include "tests/model/cuda/step/shipped_model.h"

namespace txl {
namespace {

#if defined(TXL_DEVICE_TEST)
constexpr int64_t kTokens = 740;  // of the text
#else
constexpr int64_t kTokens = 32;  // the emulator takes a second for some 10
#endif

// What each token of the text, fed behind those before it, gets.
struct Scores {
  std::vector<double> logprobs;
  std::vector<int32_t> best;  // the most likely word instead
};

Scores ScoreOnCpu(const ShippedModel& model) {
  auto step = MakeShippedOracle(model, 1);
  const std::vector<float> all = FeedRows(*step, 0, model.text, 0, kTokens, 64);
  Scores scores;
  for (int64_t t = 0; t < kTokens; ++t) {
    const auto row = all.begin() + t * model.config.vocab_size;
    const auto best = std::max_element(row, row + model.config.vocab_size);
    scores.logprobs.push_back(row[model.text[t + 1]]);
    scores.best.push_back(static_cast<int32_t>(best - row));
  }
  return scores;
}

Scores ScoreOnDevice(const ShippedModel& model, NumberFormat format) {
  CudaStepOptions options;
  options.max_rows = 64;
  options.weights = format;
  options.memory = format;
  auto step = MakeSamplingStep(model, options);
  Scores scores;
  for (int64_t t = 0; t < kTokens; t += 64) {
    auto rows = ScoringRows(0, model.text, t, std::min(kTokens, t + 64));
    for (StepRow& row : rows) row.top_logprobs = 1;
    for (const RowResult& row : RunRows(*step, rows).rows) {
      EXPECT_EQ(row.status, absl::OkStatus());
      scores.logprobs.push_back(row.logprob);
      scores.best.push_back(row.top_logprobs.at(0).token_id);
    }
  }
  return scores;
}

struct Agreement {
  double mean_difference = 0;  // of log-probabilities, absolute, in nats
  double loss = 0;             // more nats per token than in float32
  double same_best = 0;        // share of tokens
};

Agreement Compare(const Scores& found, const Scores& expected) {
  Agreement agreement;
  constexpr double kShare = 1.0 / kTokens;
  for (int64_t t = 0; t < kTokens; ++t) {
    const double more = expected.logprobs[t] - found.logprobs[t];
    agreement.mean_difference += kShare * std::abs(more);
    agreement.loss += kShare * more;
    agreement.same_best += found.best[t] == expected.best[t] ? kShare : 0;
  }
  return agreement;
}

struct Bound {
  NumberFormat format;
  double roundoff;  // largest relative error of rounding to the format
};

class ShippedFormatsTest : public testing::TestWithParam<Bound> {};

// A number of the format is off by r / sqrt(3) in the mean square, r being the
// largest relative error. On its way to a log-probability a row goes through 5
// layers of 4 products, and the head: each rounds its weights and its inputs,
// independently. So logits, whose standard deviation over the words is some 3
// nats, are off by at most 3 * sqrt(2 * 21 / 3) r = 11 r. What a mean over the
// words is off by is less, and a mean of absolute values is 0.8 of that.
TEST_P(ShippedFormatsTest, AreAsCloseToFloat32AsRoundingLets) {
  const ShippedModel model = LoadShippedModel();
  const Agreement agreement =
      Compare(ScoreOnDevice(model, GetParam().format), ScoreOnCpu(model));
  const double most = 9 * GetParam().roundoff;
  EXPECT_LE(agreement.mean_difference, most);
  // Differences have either sign, and the mean of so many vanishes; what the
  // formats may lose at all is said in docs/checkpoints.md.
  EXPECT_LE(std::abs(agreement.loss),
            std::max(0.005, 3 * most / std::sqrt(double{kTokens})));
  // Another word is the best one where two are closer than both of their errors
  // together; fewer than half of the rows have two within a nat.
  EXPECT_GE(agreement.same_best, 1 - std::max(most, 1.0 / kTokens));
  const auto tell = [](const std::string& name, double value) {
    RecordProperty(name, absl::StrCat(value));
    std::cout << FormatName(GetParam().format) << " " << name << " " << value
              << "\n";
  };
  tell("mean_difference_nats", agreement.mean_difference);
  tell("loss_nats_per_token", agreement.loss);
  tell("same_best_share", agreement.same_best);
}

INSTANTIATE_TEST_SUITE_P(Formats, ShippedFormatsTest,
                         testing::Values(Bound{NumberFormat::kBF16, 0x1p-9},
                                         Bound{NumberFormat::kF16, 0x1p-12}),
                         [](const testing::TestParamInfo<Bound>& info) {
                           return std::string(FormatName(info.param.format));
                         });

}  // namespace
}  // namespace txl
