// Memories of several chunks: the numbers are those of the LibTorch step in
// float64, and neither the cut nor the number of threads, which decides whether
// a memory is split over them, changes a bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "model/cpu/attention_form.h"
#include "model/torch/torch_step.h"
#include "tests/model/cpu/native_driver.h"

namespace txl {
namespace {

constexpr int64_t kMemory = 1300;
constexpr int64_t kLength = 2000;  // more than the ring holds

// A golden model with a longer memory.
GoldenCase LongCase(const std::string& name, at::ScalarType dtype) {
  GoldenCase golden = LoadGoldenCase(name, dtype);
  golden.config.mem_len = kMemory;
  golden.config.window.reset();
  std::mt19937 random(11);
  golden.tokens.clear();
  for (int64_t t = 0; t < kLength; ++t) {
    golden.tokens.push_back(
        static_cast<int32_t>(random() % golden.config.vocab_size));
  }
  return golden;
}

// Log-probabilities after each of the last `count` tokens, [count, V].
std::vector<double> OracleLogprobs(const std::string& name, int64_t count) {
  const GoldenCase golden = LongCase(name, at::kDouble);
  TorchStepOptions options;
  options.fingerprint = name;
  auto step = TorchStep::Create(golden.config, golden.weights, options).value();
  step->Clear(0);
  std::vector<double> out;
  for (int64_t t = 0; t < kLength;) {
    const int64_t rows =
        std::min<int64_t>(t < kLength - count ? 50 : 1, kLength - t);
    const std::vector<int32_t> wanted = {0};
    StepSegment segment = {
        0, t, absl::MakeSpan(golden.tokens).subspan(t, rows), {}};
    if (t >= kLength - count) segment.outputs = wanted;
    const at::Tensor logprobs = step->LogProbs({&segment, 1});
    if (!segment.outputs.empty()) {
      const double* row = logprobs.const_data_ptr<double>();
      out.insert(out.end(), row, row + golden.config.vocab_size);
    }
    t += rows;
  }
  return out;
}

using ModelAndForm = std::tuple<std::string, AttentionForm>;

class NativeLongMemoryTest : public testing::TestWithParam<ModelAndForm> {
 protected:
  NativeLongMemoryTest()
      : golden_(LongCase(std::get<0>(GetParam()), at::kFloat)) {}

  std::unique_ptr<ModelStep> Step(int64_t slots, int threads,
                                  const NativeFormats& formats = {}) const {
    NativeStepOptions options;
    options.slots = slots;
    options.threads = threads;
    options.formats = formats;
    options.formats.form = std::get<1>(GetParam());
    return MakeNativeStep(golden_, options);
  }

  GoldenCase golden_;
};

TEST_P(NativeLongMemoryTest, NumbersAreTheOracles) {
  constexpr int64_t kCount = 50;
  const std::vector<double> expected =
      OracleLogprobs(std::get<0>(GetParam()), kCount);
  auto step = Step(1, 1);
  Feed(*step, 0, golden_.tokens, 0, kLength - kCount, 37);
  const std::vector<float> seen =
      Feed(*step, 0, golden_.tokens, kLength - kCount, kLength, 1);
  ASSERT_EQ(seen.size(), expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    ASSERT_NEAR(seen[i], expected[i], 2e-5) << "number " << i;
  }
}

TEST_P(NativeLongMemoryTest, CutsAndSplittingChangeNoBit) {
  auto alone = Step(1, 1);
  const std::vector<float> expected =
      Feed(*alone, 0, golden_.tokens, 0, kLength, 1);
  for (const int threads : {1, 2, 5, 16}) {
    auto step = Step(1, threads);
    EXPECT_TRUE(Feed(*step, 0, golden_.tokens, 0, kLength, 1 + 3 * threads) ==
                expected)
        << threads << " threads";
  }
}

// All of whole numbers, over tiles that the ring has written several times.
TEST_P(NativeLongMemoryTest, WholeNumbersKeepTheirBitsAndComeClose) {
  constexpr NumberFormat kInt8 = NumberFormat::kInt8;
  const NativeFormats formats = {kInt8, Products::kInteger, kInt8, kInt8, {}};
  auto alone = Step(1, 1, formats);
  const std::vector<float> expected =
      Feed(*alone, 0, golden_.tokens, 0, kLength, 1);
  for (const int threads : {1, 4}) {
    auto step = Step(1, threads, formats);
    EXPECT_TRUE(Feed(*step, 0, golden_.tokens, 0, kLength, 11) == expected)
        << threads << " threads";
  }
  auto floats = Step(1, 4);
  const std::vector<float> exact =
      Feed(*floats, 0, golden_.tokens, 0, kLength, 64);
  double difference = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += std::abs(exact[i] - expected[i]) / double(exact.size());
  }
  EXPECT_LT(difference, 0.1);
}

// Next to many others the memory is not split.
TEST_P(NativeLongMemoryTest, CompanyChangesNoBit) {
  constexpr int32_t kSessions = 12;
  auto alone = Step(1, 4);
  const std::vector<float> expected =
      Feed(*alone, 0, golden_.tokens, 0, kLength, 64);
  auto step = Step(kSessions, 4);
  for (int32_t slot = 0; slot < kSessions; ++slot) {
    Feed(*step, slot, golden_.tokens, 0, kLength - 3, 64);
  }
  const int64_t vocabulary = golden_.config.vocab_size;
  const std::vector<int32_t> wanted = {0};
  for (int64_t t = kLength - 3; t < kLength; ++t) {
    std::vector<StepSegment> segments;
    for (int32_t slot = 0; slot < kSessions; ++slot) {
      segments.push_back(
          {slot, t, absl::MakeSpan(golden_.tokens).subspan(t, 1), wanted});
    }
    for (NextTokenDistribution* row : step->Run(segments)) {
      std::vector<float> seen;
      AppendLogprobs(*row, seen);
      ASSERT_TRUE(std::equal(seen.begin(), seen.end(),
                             expected.begin() + t * vocabulary));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, NativeLongMemoryTest,
    testing::Combine(
        testing::Values("kimi-char", "kimi-shaw-clamp", "hf-adaptive"),
        testing::Values(AttentionForm::kProjected, AttentionForm::kAbsorbed)),
    [](const testing::TestParamInfo<ModelAndForm>& info) {
      std::string name = std::get<0>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_" + FormName(std::get<1>(info.param));
    });

}  // namespace
}  // namespace txl
