// What sessions of the native step may rely on: the same bits in any company,
// on any number of threads, however their tokens were cut, moved or rebuilt.

#include "model/cpu/native_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "model/base/number_format.h"
#include "model/cpu/attention_form.h"
#include "tests/model/cpu/native_driver.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

NativeStepOptions PlainOptions(int64_t slots, int threads = 1) {
  NativeStepOptions options;
  options.slots = slots;
  options.spare_rows = 16;
  options.threads = threads;
  return options;
}

using ModelAndForm = std::tuple<std::string, AttentionForm>;

class NativeStepTest : public testing::TestWithParam<ModelAndForm> {
 protected:
  NativeStepTest()
      : golden_(LoadGoldenCase(std::get<0>(GetParam()), at::kFloat)) {}

  static NativeStepOptions Options(int64_t slots, int threads = 1) {
    NativeStepOptions options = PlainOptions(slots, threads);
    options.formats.form = std::get<1>(GetParam());
    return options;
  }

  int64_t length() const { return static_cast<int64_t>(golden_.tokens.size()); }
  std::vector<float> Alone() const {
    auto step = MakeNativeStep(golden_, Options(1));
    return Feed(*step, 0, golden_.tokens, 0, length(), 1);
  }

  GoldenCase golden_;
};

// Five sessions that begin late and feed random numbers of tokens at a time.
TEST_P(NativeStepTest, CompanyCutsAndThreadsChangeNoBit) {
  constexpr int32_t kSessions = 5;
  const std::vector<float> expected = Alone();
  for (const int threads : {1, 2, 3}) {
    std::mt19937 random(threads);
    auto step = MakeNativeStep(golden_, Options(kSessions, threads));
    const std::vector<int32_t> ticks =
        TicksBefore(step->beats(), golden_.tokens);
    std::vector<int64_t> position(kSessions);
    std::vector<std::vector<float>> seen(kSessions);
    while (*std::min_element(position.begin(), position.end()) < length()) {
      std::vector<StepSegment> segments;
      std::vector<std::vector<int32_t>> outputs(kSessions);
      for (int32_t s = 0; s < kSessions; ++s) {
        const int64_t count = std::min<int64_t>(
            random() % 3 == 0 ? random() % 17 : 1, length() - position[s]);
        if (count == 0) continue;
        outputs[s].resize(count);
        std::iota(outputs[s].begin(), outputs[s].end(), 0);
        segments.push_back(
            {s, position[s],
             absl::MakeSpan(golden_.tokens).subspan(position[s], count),
             outputs[s], absl::MakeSpan(ticks).subspan(position[s], count)});
        position[s] += count;
      }
      if (segments.empty()) continue;
      std::shuffle(segments.begin(), segments.end(), random);
      const auto rows = step->Run(segments);
      size_t row = 0;
      for (const StepSegment& segment : segments) {
        for (size_t i = 0; i < segment.outputs.size(); ++i) {
          AppendLogprobs(*rows[row++], seen[segment.slot]);
        }
      }
    }
    for (const auto& logprobs : seen) EXPECT_EQ(logprobs, expected);
  }
}

TEST_P(NativeStepTest, ADiscardedStepLeavesNoTrace) {
  const std::vector<float> expected = Alone();
  auto step = MakeNativeStep(golden_, Options(1));
  const int64_t vocabulary = golden_.config.vocab_size;
  std::mt19937 random(1);
  for (int64_t t = 0; t < length(); ++t) {
    // Other tokens at the positions from t on, up to the spare rows.
    std::vector<int32_t> other(1 + random() % 16);
    for (int32_t& id : other) id = static_cast<int32_t>(random() % vocabulary);
    const StepSegment discarded = {0, t, other, {}};
    step->Run({&discarded, 1});
    const std::vector<float> row = Feed(*step, 0, golden_.tokens, t, t + 1, 1);
    ASSERT_TRUE(
        std::equal(row.begin(), row.end(), expected.begin() + t * vocabulary))
        << "position " << t;
  }
}

TEST_P(NativeStepTest, MovedStatesGoOnWithTheSameBits) {
  const std::vector<float> expected = Alone();
  const int64_t vocabulary = golden_.config.vocab_size;
  for (const int64_t cut : {int64_t{1}, length() / 3, length() - 2}) {
    auto step = MakeNativeStep(golden_, Options(3));
    Feed(*step, 0, golden_.tokens, 0, cut, 7);
    const StateImage image = step->Export(0, cut);
    ASSERT_TRUE(step->Import(2, image).ok());
    step->Copy(2, 1);
    for (const int32_t slot : {1, 2}) {
      const std::vector<float> rest =
          Feed(*step, slot, golden_.tokens, cut, length(), 5);
      EXPECT_TRUE(std::equal(rest.begin(), rest.end(),
                             expected.begin() + cut * vocabulary))
          << "moved at " << cut;
    }
  }
}

// Before a step needs them, in pieces, or by the step itself; also in a copy.
TEST_P(NativeStepTest, WhatDerivesFromAnImportedStateMayComeLate) {
  const std::vector<float> expected = Alone();
  const int64_t vocabulary = golden_.config.vocab_size;
  const int64_t cut = length() / 2;
  auto step = MakeNativeStep(golden_, Options(3));
  Feed(*step, 0, golden_.tokens, 0, cut, 7);
  ASSERT_TRUE(step->Import(1, step->Export(0, cut)).ok());
  step->Derive(1, 2);
  step->Derive(1, 3);
  step->Copy(1, 2);
  step->Derive(1, 1000);  // more than there are
  for (const int32_t slot : {1, 2}) {
    const std::vector<float> rest =
        Feed(*step, slot, golden_.tokens, cut, length(), 5);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(),
                           expected.begin() + cut * vocabulary));
  }
}

std::vector<NativeFormats> NarrowFormats() {
  constexpr NumberFormat kInt8 = NumberFormat::kInt8;
  constexpr NumberFormat kBF16 = NumberFormat::kBF16;
  constexpr NumberFormat kF16 = NumberFormat::kF16;
  return {{kF16, Products::kFloat, kBF16, kF16, {}},
          {kBF16, Products::kFloat, kBF16, kF16, {}},
          {kInt8, Products::kFloat, kBF16, kF16, {}},
          {kInt8, Products::kInteger, kBF16, kF16, {}},
          {NumberFormat::kF32, Products::kFloat, kInt8, kInt8, {}},
          {kInt8, Products::kInteger, kInt8, kInt8, {}},
          {NumberFormat::kInt4, Products::kFloat, kBF16, kF16, {}},
          {NumberFormat::kInt4, Products::kInteger, kInt8, kInt8, {}}};
}

// Rounded memory: what is derived comes from the rounded rows, so that a moved
// state goes on with the same bits.
TEST_P(NativeStepTest, NarrowFormatsKeepThePromisesAndComeClose) {
  const std::vector<float> exact = Alone();
  for (const NativeFormats& formats : NarrowFormats()) {
    NativeStepOptions options = Options(2, 2);
    const std::optional<AttentionForm> form = options.formats.form;
    options.formats = formats;
    options.formats.form = form;
    auto step = MakeNativeStep(golden_, options);
    const std::vector<float> alone =
        Feed(*step, 0, golden_.tokens, 0, length(), 1);
    double difference = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      difference += std::abs(alone[i] - exact[i]) / double(exact.size());
    }
    // Rounded weights are a matter of their own: rounded_weights_test.cc.
    EXPECT_LT(difference, formats.weights == NumberFormat::kInt4 ? 1 : 0.2);
    EXPECT_GT(difference, 0);
    step->Clear(0);
    const int64_t cut = length() / 2;
    std::vector<float> moved = Feed(*step, 0, golden_.tokens, 0, cut, 13);
    ASSERT_TRUE(step->Import(1, step->Export(0, cut)).ok());
    const std::vector<float> rest =
        Feed(*step, 1, golden_.tokens, cut, length(), 5);
    moved.insert(moved.end(), rest.begin(), rest.end());
    EXPECT_EQ(moved, alone);
  }
}

// Architecture section 3: memory depends on the last M + (N-1)(W-1) + 1 ids.
TEST_P(NativeStepTest, ARebuildFromTheLastIdsHasTheSameBits) {
  const ModelConfig& config = golden_.config;
  std::vector<int32_t> ids;
  std::mt19937 random(2);
  const int64_t needed =
      config.mem_len + (config.n_layer - 1) * (config.serving_window() - 1) + 1;
  const int64_t total = needed + 100;
  for (int64_t t = 0; t < total; ++t) {
    ids.push_back(static_cast<int32_t>(random() % config.vocab_size));
  }
  auto step = MakeNativeStep(golden_, Options(2));
  Feed(*step, 0, ids, 0, total - 1, 16);
  Feed(*step, 1, ids, total - needed, total - 1, 16);
  EXPECT_EQ(Feed(*step, 1, ids, total - 1, total, 1),
            Feed(*step, 0, ids, total - 1, total, 1));
}

TEST_P(NativeStepTest, OnlyWantedRowsComeBackInOrder) {
  const std::vector<float> expected = Alone();
  const int64_t vocabulary = golden_.config.vocab_size;
  auto step = MakeNativeStep(golden_, Options(1));
  const std::vector<int32_t> wanted = {2, 9};
  const std::vector<int32_t> ticks = TicksBefore(step->beats(), golden_.tokens);
  const StepSegment segment = {0, 0, absl::MakeSpan(golden_.tokens).first(10),
                               wanted, absl::MakeSpan(ticks).first(10)};
  const auto rows = step->Run({&segment, 1});
  ASSERT_EQ(rows.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<float> row;
    AppendLogprobs(*rows[i], row);
    EXPECT_TRUE(std::equal(row.begin(), row.end(),
                           expected.begin() + wanted[i] * vocabulary));
  }
}

TEST_P(NativeStepTest, ClustersEvaluatedTogetherHaveTheSameBits) {
  auto step = MakeNativeStep(golden_, Options(2));
  const std::vector<int32_t> outputs = {0, 3, 7};
  const StepSegment segment = {0, 0, absl::MakeSpan(golden_.tokens).first(8),
                               outputs};
  const auto all = [&](bool together) {
    const auto rows = step->Run({&segment, 1});
    if (together) {
      std::vector<ClusterOfRow> clusters;
      for (int64_t row = 0; row < 3; ++row) {
        for (size_t c = 0; c < rows[0]->bins().clusters(); ++c) {
          clusters.push_back({row, c});
        }
      }
      step->EvaluateClusters(clusters);
    }
    std::vector<float> logprobs;
    for (NextTokenDistribution* row : rows) AppendLogprobs(*row, logprobs);
    return logprobs;
  };
  EXPECT_EQ(all(false), all(true));
}

// Row by row the clusters that are evaluated.
std::vector<std::vector<bool>> Evaluated(
    absl::Span<NextTokenDistribution* const> rows) {
  std::vector<std::vector<bool>> evaluated;
  for (const NextTokenDistribution* row : rows) {
    std::vector<bool>& of_row = evaluated.emplace_back();
    for (size_t c = 0; c < 3; ++c) of_row.push_back(row->IsEvaluated(c));
  }
  return evaluated;
}

TEST(NativeSoftmaxTest, ClustersAreEvaluatedWhenTheyAreLookedAtOrAnnounced) {
  using Clusters = std::vector<std::vector<bool>>;
  const GoldenCase golden = LoadGoldenCase("kimi-adaptive-div2", at::kFloat);
  ASSERT_EQ(golden.config.cutoffs.size(), 3u);
  auto step = MakeNativeStep(golden, PlainOptions(1));
  const std::vector<int32_t> outputs = {0, 1};
  const auto run = [&](int64_t position) {
    const StepSegment segment = {
        0, position, absl::MakeSpan(golden.tokens).subspan(position, 2),
        outputs};
    return step->Run({&segment, 1});
  };
  const auto rows = run(0);
  EXPECT_EQ(Evaluated(rows), (Clusters{{0, 0, 0}, {0, 0, 0}}));
  rows[0]->Words();
  rows[0]->ClusterMass(1);
  EXPECT_EQ(Evaluated(rows), (Clusters{{0, 0, 0}, {0, 0, 0}}));
  rows[1]->ClusterWords(2);
  EXPECT_EQ(Evaluated(rows), (Clusters{{0, 0, 0}, {0, 0, 1}}));
  const ClusterOfRow announced[] = {{0, 1}, {1, 0}};
  step->EvaluateClusters(announced);
  EXPECT_EQ(Evaluated(rows), (Clusters{{0, 1, 0}, {1, 0, 1}}));
  EXPECT_EQ(Evaluated(run(2)), (Clusters{{0, 0, 0}, {0, 0, 0}}));
}

std::string TestName(const testing::TestParamInfo<ModelAndForm>& info) {
  std::string name = std::get<0>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + FormName(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    Models, NativeStepTest,
    testing::Combine(
        testing::Values("kimi-char", "kimi-adaptive-div2", "kimi-prelnorm",
                        "kimi-shaw-clamp", "hf-adaptive", "hf-prelnorm-tied-r",
                        "nvidia-adaptive", "labml-char", "musicautobot",
                        "sorter", "thu"),
        testing::Values(AttentionForm::kProjected, AttentionForm::kAbsorbed)),
    TestName);

TEST(NativeStepErrorTest, NamesTheOptionThatIsWrong) {
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  const auto message = [&](const NativeStepOptions& options) {
    return std::string(CreateNativeStep(golden.config, golden.weights, options)
                           .status()
                           .message());
  };
  NativeStepOptions options = PlainOptions(0);
  EXPECT_THAT(message(options), HasSubstr("slots"));
  options = PlainOptions(1);
  options.spare_rows = 7;
  EXPECT_THAT(message(options), HasSubstr("spare_rows"));
  options = PlainOptions(1);
  options.max_rows = 0;
  EXPECT_THAT(message(options), HasSubstr("max_rows"));
  EXPECT_THAT(message(PlainOptions(1, 0)), HasSubstr("threads"));
  options = PlainOptions(1);
  options.formats.products = Products::kInteger;
  EXPECT_THAT(message(options), HasSubstr("int8 or int4 weights"));
  const GoldenCase doubles = LoadGoldenCase("kimi-char", at::kDouble);
  EXPECT_THAT(CreateNativeStep(doubles.config, doubles.weights, PlainOptions(1))
                  .status()
                  .message(),
              HasSubstr("float32"));
}

TEST(NativeStepErrorTest, AnImageOfAnotherKernelIsRefused) {
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  auto step = MakeNativeStep(golden, PlainOptions(1));
  Feed(*step, 0, golden.tokens, 0, 10, 10);
  StateImage image = step->Export(0, 10);
  image.identity.kernel = "torch-2.13-absorbed-cpu-AVX512";
  image.Seal();
  EXPECT_THAT(step->Import(0, image).message(), HasSubstr("kernel"));
}

// Each number format and the products are part of what a state is.
TEST(NativeStepErrorTest, AnImageOfAnotherFormatIsRefused) {
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  NativeStepOptions options = PlainOptions(1);
  options.formats = {NumberFormat::kInt8,
                     Products::kInteger,
                     NumberFormat::kInt8,
                     NumberFormat::kInt8,
                     {}};
  auto step = MakeNativeStep(golden, options);
  Feed(*step, 0, golden.tokens, 0, 10, 10);
  const StateImage image = step->Export(0, 10);
  EXPECT_TRUE(step->Import(0, image).ok());
  const auto message = [&](auto change) {
    NativeStepOptions other = options;
    change(other.formats);
    return std::string(
        MakeNativeStep(golden, other)->Import(0, image).message());
  };
  EXPECT_THAT(message([](auto& f) { f.products = Products::kFloat; }),
              HasSubstr("kernel"));
  EXPECT_THAT(message([](auto& f) { f.weights = NumberFormat::kInt4; }),
              HasSubstr("kernel"));
  EXPECT_THAT(message([](auto& f) { f.derived = NumberFormat::kF16; }),
              HasSubstr("kernel"));
  EXPECT_THAT(message([](auto& f) { f.memory = NumberFormat::kF16; }),
              HasSubstr("dtype"));
}

// A session whose numbers ran away leaves its neighbours alone, and is well
// again after Clear.
TEST(NativeStepErrorTest, NumbersThatRanAwayStayInTheirSlot) {
  GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  auto healthy = MakeNativeStep(golden, PlainOptions(1));
  const std::vector<float> expected =
      Feed(*healthy, 0, golden.tokens, 0, 30, 1);
  constexpr int32_t kBad = 60;  // a token that no text of the case has
  golden.weights.embedding[0].w = golden.weights.embedding[0].w.clone();
  golden.weights.embedding[0].w[kBad].fill_(
      std::numeric_limits<float>::quiet_NaN());
  auto step = MakeNativeStep(golden, PlainOptions(2));
  const std::vector<int32_t> bad(30, kBad);
  std::vector<float> seen;
  for (int64_t t = 0; t < 30; ++t) {
    const std::vector<int32_t> first = {0};
    const std::vector<StepSegment> both = {
        {0, t, absl::MakeSpan(bad).subspan(t, 1), first},
        {1, t, absl::MakeSpan(golden.tokens).subspan(t, 1), first}};
    const auto rows = step->Run(both);
    EXPECT_TRUE(std::isnan(rows[0]->Words()[0]));
    AppendLogprobs(*rows[1], seen);
  }
  EXPECT_EQ(seen, expected);
  step->Clear(0);
  EXPECT_EQ(Feed(*step, 0, golden.tokens, 0, 30, 4), expected);
}

}  // namespace
}  // namespace txl
