// What sessions of a TorchStep may rely on, whatever the model.

#include "model/torch/torch_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "model/reference/network.h"
#include "tests/model/torch/golden_case.h"
#include "tests/model/torch/session_driver.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

class TorchStepTest : public testing::TestWithParam<std::string> {
 protected:
  TorchStepTest() : golden_(LoadGoldenCase(GetParam(), at::kFloat)) {}

  int64_t length() const { return static_cast<int64_t>(golden_.tokens.size()); }

  GoldenCase golden_;
};

TEST_P(TorchStepTest, SessionsAtDifferentPositionsShareABatch) {
  constexpr int64_t kSessions = 5;
  auto alone = MakeStep(golden_, 1, 8);
  auto batch = MakeStep(golden_, kSessions, 8);
  const std::vector<int32_t> ticks =
      TicksBefore(batch->beats(), golden_.tokens);
  std::vector<at::Tensor> expected;
  std::vector<int64_t> position(kSessions);
  std::vector<std::vector<at::Tensor>> seen(kSessions);
  // Session s starts s rounds late and feeds 1 + s tokens a round.
  for (int32_t s = 0; s < kSessions; ++s) {
    alone->Clear(0);
    expected.push_back(
        FeedInCuts(*alone, 0, golden_.tokens, 0, length(), 1 + s));
    batch->Clear(s);
  }
  for (int64_t round = 0; position[0] < length(); ++round) {
    std::vector<StepSegment> segments;
    std::vector<std::vector<int32_t>> outputs(kSessions);
    for (int32_t s = 0; s < kSessions; ++s) {
      const int64_t end = std::min(position[s] + 1 + s, length());
      if (round < s || end == position[s]) continue;
      outputs[s] = AllRows(end - position[s]);
      segments.push_back(
          {s, position[s],
           absl::MakeSpan(golden_.tokens)
               .subspan(position[s], end - position[s]),
           outputs[s],
           absl::MakeSpan(ticks).subspan(position[s], end - position[s])});
      position[s] = end;
    }
    const at::Tensor logprobs = batch->LogProbs(segments);
    int64_t row = 0;
    for (const StepSegment& segment : segments) {
      const int64_t rows = static_cast<int64_t>(segment.tokens.size());
      seen[segment.slot].push_back(logprobs.narrow(0, row, rows));
      row += rows;
    }
  }
  for (int32_t s = 0; s < kSessions; ++s) {
    EXPECT_LE(MaxAbsDifference(at::cat(seen[s]), expected[s]), 2e-5) << s;
  }
}

TEST_P(TorchStepTest, OnlyWantedRowsComeBackInOrder) {
  auto step = MakeStep(golden_, 2, 16);
  step->Clear(0);
  step->Clear(1);
  const at::Tensor all = FeedRange(*step, 0, golden_.tokens, 0, 10);
  step->Clear(0);
  const auto tokens = absl::MakeSpan(golden_.tokens).first(10);
  const std::vector<int32_t> first = {2, 9};
  const std::vector<int32_t> second = {0};
  const std::vector<int32_t> ticks = TicksBefore(step->beats(), tokens);
  const at::Tensor some = step->LogProbs(
      {{1, 0, tokens, first, ticks}, {0, 0, tokens, second, ticks}});
  ASSERT_EQ(some.size(0), 3);
  EXPECT_LE(MaxAbsDifference(some[0], all[2]), 2e-5);
  EXPECT_LE(MaxAbsDifference(some[1], all[9]), 2e-5);
  EXPECT_LE(MaxAbsDifference(some[2], all[0]), 2e-5);
  step->Clear(0);
  EXPECT_EQ(step->LogProbs({{0, 0, tokens, {}}}).size(0), 0);
}

TEST_P(TorchStepTest, AnExportedStateContinuesBitForBitElsewhere) {
  for (const int64_t position : {int64_t{0}, int64_t{3}, length() / 2}) {
    auto here = MakeStep(golden_, 1, 8);
    auto there = MakeStep(golden_, 2, 8);
    here->Clear(0);
    there->Clear(1);
    if (position > 0) {
      FeedInCuts(*here, 0, golden_.tokens, 0, position, 3);
    }
    FeedInCuts(*there, 1, golden_.tokens, 0, 20, 8);  // something to replace
    const StateImage image = here->Export(0, position);
    ASSERT_TRUE(there->Import(1, image).ok());
    EXPECT_EQ(there->Export(1, position).data, image.data);
    const at::Tensor stayed =
        FeedInCuts(*here, 0, golden_.tokens, position, length(), 5);
    const at::Tensor moved =
        FeedInCuts(*there, 1, golden_.tokens, position, length(), 5);
    EXPECT_TRUE(at::equal(stayed, moved)) << position;
  }
}

TEST_P(TorchStepTest, AnImageHoldsTheRowsOfTheLastPositionsOnly) {
  auto step = MakeStep(golden_, 1, 8);
  step->Clear(0);
  FeedInCuts(*step, 0, golden_.tokens, 0, length(), 8);
  const ModelConfig& config = golden_.config;
  const StateImage late = step->Export(0, length());
  EXPECT_EQ(late.rows, config.mem_len);
  EXPECT_EQ(late.Bytes(), config.n_layer * config.mem_len * config.d_model * 4);
  step->Clear(0);
  const bool zeros = config.mem_init == MemoryInit::kZeros;
  EXPECT_EQ(step->Export(0, 0).rows, zeros ? config.mem_len : 0);
}

TEST_P(TorchStepTest, ACopyContinuesBitForBit) {
  auto step = MakeStep(golden_, 3, 8);
  step->Clear(0);
  step->Clear(2);
  FeedInCuts(*step, 0, golden_.tokens, 0, 30, 4);
  step->Copy(0, 2);
  step->Copy(0, 0);
  const at::Tensor original =
      FeedInCuts(*step, 0, golden_.tokens, 30, length(), 2);
  const at::Tensor copy = FeedInCuts(*step, 2, golden_.tokens, 30, length(), 2);
  EXPECT_TRUE(at::equal(original, copy));
}

TEST_P(TorchStepTest, DiscardedRowsChangeNothing) {
  auto plain = MakeStep(golden_, 1, 8);
  auto retried = MakeStep(golden_, 1, 8);
  plain->Clear(0);
  retried->Clear(0);
  std::vector<int32_t> other = golden_.tokens;
  for (int32_t& id : other) {
    id = static_cast<int32_t>((id + 1) % golden_.config.vocab_size);
  }
  for (int64_t at = 0; at < length(); at += 2) {
    const int64_t end = std::min(at + 2, length());
    const at::Tensor expected = FeedRange(*plain, 0, golden_.tokens, at, end);
    // As many as there are spare rows, then back.
    FeedRange(*retried, 0, other, at, std::min(at + 8, length()));
    EXPECT_TRUE(
        at::equal(FeedRange(*retried, 0, golden_.tokens, at, end), expected))
        << at;
  }
}

TEST_P(TorchStepTest, AClearedSlotIsAsNew) {
  auto step = MakeStep(golden_, 1, 8);
  step->Clear(0);
  const at::Tensor first = FeedInCuts(*step, 0, golden_.tokens, 0, 25, 5);
  FeedInCuts(*step, 0, golden_.tokens, 25, length(), 8);
  step->Clear(0);
  EXPECT_TRUE(at::equal(FeedInCuts(*step, 0, golden_.tokens, 0, 25, 5), first));
}

// Both starts, both norms, window below mem_len + 1, clamp, tables.
INSTANTIATE_TEST_SUITE_P(Models, TorchStepTest,
                         testing::Values("hf-adaptive", "hf-prelnorm-tied-r",
                                         "kimi-char", "thu", "kimi-shaw-clamp",
                                         "musicautobot"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A token whose embedding overflows on its way through the layers.
constexpr int32_t kPoison = 7;

GoldenCase PoisonedCase() {
  GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  at::Tensor& table = golden.weights.embedding[0].w;
  table = table.clone();  // the head's stays as it is
  table[kPoison].fill_(std::numeric_limits<float>::max());
  for (int32_t& id : golden.tokens) id = id == kPoison ? 0 : id;
  return golden;
}

TEST(TorchStepNonFiniteTest, StaysInItsSession) {
  GoldenCase golden = PoisonedCase();
  auto step = MakeStep(golden, 2, 8);
  step->Clear(0);
  step->Clear(1);
  const at::Tensor expected = FeedRange(*step, 0, golden.tokens, 0, 4);
  step->Clear(0);
  const std::vector<int32_t> poison = {kPoison, 1};
  const std::vector<int32_t> rows = {0, 1};
  const std::vector<int32_t> good_rows = {0, 1, 2, 3};
  const auto good = absl::MakeSpan(golden.tokens).first(4);
  const at::Tensor out =
      step->LogProbs({{1, 0, poison, rows}, {0, 0, good, good_rows}});
  EXPECT_FALSE(at::isfinite(out.narrow(0, 0, 2)).any().item<bool>());
  EXPECT_LE(MaxAbsDifference(out.narrow(0, 2, 4), expected), 2e-5);
}

TEST(TorchStepNonFiniteTest, DiscardingTheRowsRepairsTheSession) {
  GoldenCase golden = PoisonedCase();
  auto plain = MakeStep(golden, 1, 8);
  auto step = MakeStep(golden, 1, 8);
  plain->Clear(0);
  step->Clear(0);
  FeedInCuts(*plain, 0, golden.tokens, 0, 10, 5);
  FeedInCuts(*step, 0, golden.tokens, 0, 10, 5);
  std::vector<int32_t> poisoned = golden.tokens;
  poisoned[12] = kPoison;
  FeedRange(*step, 0, poisoned, 10, 18);
  EXPECT_TRUE(at::equal(FeedInCuts(*step, 0, golden.tokens, 10, 40, 1),
                        FeedInCuts(*plain, 0, golden.tokens, 10, 40, 1)));
}

TEST(TorchStepNonFiniteTest, KeptRowsAreNotHidden) {
  GoldenCase golden = PoisonedCase();
  auto step = MakeStep(golden, 1, 8);
  step->Clear(0);
  std::vector<int32_t> poisoned = golden.tokens;
  poisoned[3] = kPoison;
  FeedRange(*step, 0, poisoned, 0, 6);
  EXPECT_FALSE(
      at::isfinite(FeedRange(*step, 0, poisoned, 6, 8)).any().item<bool>());
  EXPECT_FALSE(
      at::isfinite(FeedRange(*step, 0, poisoned, 6, 9)).any().item<bool>());
}

TEST(TorchStepNonFiniteTest, ClearingRepairsTheSlot) {
  GoldenCase golden = PoisonedCase();
  auto step = MakeStep(golden, 1, 8);
  step->Clear(0);
  const at::Tensor expected = FeedRange(*step, 0, golden.tokens, 0, 8);
  const std::vector<int32_t> poison = {kPoison};
  step->LogProbs({{0, 8, poison, {}}});
  step->Clear(0);
  EXPECT_TRUE(at::equal(FeedRange(*step, 0, golden.tokens, 0, 8), expected));
}

// The paper's forward, one token per call: an independent derivation.
at::Tensor ReferenceStepwise(const ModelConfig& config, const Weights& weights,
                             const std::vector<int32_t>& tokens) {
  const ReferenceNetwork network(config, weights);
  SegmentMemory memory = network.InitialMemory(1);
  std::vector<at::Tensor> rows;
  for (const int32_t id : tokens) {
    const at::Tensor token = at::full({1, 1}, id, at::kLong);
    rows.push_back(network.LogProbs(network.Forward(token, memory)[0][0]));
  }
  return at::stack(rows);
}

void ExpectEqualsReference(GoldenCase golden) {
  const at::Tensor expected =
      ReferenceStepwise(golden.config, golden.weights, golden.tokens);
  auto step = MakeStep(golden, 1, 8);
  step->Clear(0);
  const int64_t length = static_cast<int64_t>(golden.tokens.size());
  EXPECT_LE(MaxAbsDifference(FeedInCuts(*step, 0, golden.tokens, 0, length, 3),
                             expected),
            1e-9);
}

TEST(TorchStepShapeTest, NoMemoryMeansThatATokenSeesItself) {
  for (const char* name : {"kimi-char", "hf-adaptive", "labml-char"}) {
    GoldenCase golden = LoadGoldenCase(name, at::kDouble);
    golden.config.mem_len = 0;
    golden.config.window = 1;
    ExpectEqualsReference(std::move(golden));
  }
}

TEST(TorchStepShapeTest, AnUnlimitedWindowIsServedWithAllRowsAndItself) {
  GoldenCase golden = LoadGoldenCase("kimi-char", at::kDouble);
  golden.config.window.reset();
  golden.config.mem_len = 6;
  auto step = MakeStep(golden, 1, 8);
  EXPECT_EQ(step->ring().window, 7);
  EXPECT_EQ(step->ring().capacity(), 14);
  ExpectEqualsReference(std::move(golden));
}

TEST(TorchStepShapeTest, DistancesBeyondAShortTableUseItsLastRow) {
  GoldenCase golden = LoadGoldenCase("kimi-shaw", at::kDouble);
  for (LayerWeights& layer : golden.weights.layers) {
    layer.rel_t = layer.rel_t.narrow(0, 0, 5);
    layer.rel_s = layer.rel_s.narrow(0, 0, 5);
  }
  ExpectEqualsReference(std::move(golden));
}

TEST(TorchStepImportTest, RefusesAnImageOfAnotherModel) {
  GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  auto here = MakeStep(golden, 1, 8);
  golden.name = "another";
  auto there = MakeStep(golden, 1, 8);
  here->Clear(0);
  FeedRange(*here, 0, golden.tokens, 0, 8);
  const absl::Status status = there->Import(0, here->Export(0, 8));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("fingerprint"));
}

TEST(TorchStepImportTest, RefusesADamagedImageAndLeavesTheSlotAlone) {
  GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  auto step = MakeStep(golden, 1, 8);
  step->Clear(0);
  FeedRange(*step, 0, golden.tokens, 0, 8);
  const StateImage good = step->Export(0, 8);
  StateImage bad = good;
  bad.data[5] ^= 1;
  EXPECT_EQ(step->Import(0, bad).code(), absl::StatusCode::kDataLoss);
  bad = good;
  bad.position = 9;  // would need nine rows
  bad.Seal();
  EXPECT_FALSE(step->Import(0, bad).ok());
  EXPECT_EQ(step->Export(0, 8).data, good.data);
}

TEST(TorchStepImportTest, TakesAnotherStepsNumbersWhereItIsAskedTo) {
  auto here = MakeStep(LoadGoldenCase("kimi-char", at::kDouble), 1, 8);
  const GoldenCase golden = LoadGoldenCase("kimi-char", at::kFloat);
  auto there = MakeStep(golden, 1, 8);
  here->Clear(0);
  FeedRange(*here, 0, golden.tokens, 0, 8);
  StateImage image = here->Export(0, 8);
  EXPECT_FALSE(there->Import(0, image).ok());
  ASSERT_TRUE(there->ImportForeign(0, image).ok());
  EXPECT_EQ(*WidenRows(there->Export(0, 8)), *WidenRows(image));
  image.rows = 7;
  EXPECT_EQ(there->ImportForeign(0, image).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TorchStepCreateTest, NamesTheOptionThatIsWrong) {
  const GoldenCase golden = LoadGoldenCase("sorter", at::kFloat);
  const auto message = [&](int64_t slots, int64_t spare, int64_t tile) {
    TorchStepOptions options;
    options.slots = slots;
    options.spare_rows = spare;
    options.row_tile = tile;
    const auto step = TorchStep::Create(golden.config, golden.weights, options);
    return std::string(step.status().message());
  };
  EXPECT_THAT(message(0, 64, 16), HasSubstr("slots"));
  EXPECT_THAT(message(1, 7, 16), HasSubstr("spare_rows"));
  EXPECT_THAT(message(1, 64, 0), HasSubstr("row_tile"));
}

TEST(TorchStepCreateTest, ASlotTakesItsRowsInEveryLayer) {
  const GoldenCase golden = LoadGoldenCase("sorter", at::kDouble);
  // 2 layers, 23 + 8 rows of 32 doubles.
  EXPECT_EQ(MakeStep(golden, 1, 8)->BytesPerSlot(), 2 * 31 * 32 * 8);
  EXPECT_EQ(TorchSlotBytes(golden.config, 8, 8), 2 * 31 * 32 * 8);
}

TEST(TorchStepRunTest, ThrowsOnWhatACallerMustNotAsk) {
  const GoldenCase golden = LoadGoldenCase("sorter", at::kFloat);
  auto step = MakeStep(golden, 2, 8);
  const std::vector<int32_t> one = {1};
  const std::vector<int32_t> outside = {10};
  const std::vector<int32_t> nine(9, 1);
  EXPECT_THROW(step->LogProbs({{2, 0, one, {}}}), c10::Error);
  EXPECT_THROW(step->LogProbs({{0, 0, one, {}}, {0, 1, one, {}}}), c10::Error);
  EXPECT_THROW(step->LogProbs({{0, 0, outside, {}}}), c10::Error);
  EXPECT_THROW(step->LogProbs({{0, 0, nine, {}}}), c10::Error);
  EXPECT_THROW(step->LogProbs({{0, -1, one, {}}}), c10::Error);
  EXPECT_THROW(step->LogProbs({{0, 0, one, one}}), c10::Error);
}

}  // namespace
}  // namespace txl
