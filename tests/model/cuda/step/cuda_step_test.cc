// The CUDA step's numbers are those of the native step for CPUs, on models of
// many shapes; and what sessions may rely on.

#include "tests/model/cuda/step/cuda_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/cuda_driver.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

// Log-probabilities of both go through float32 sums in another order.
constexpr double kTolerance = 2e-5;
constexpr uint32_t kShapes = 10;

CudaStepOptions Options(int64_t slots) {
  CudaStepOptions options;
  options.slots = slots;
  options.spare_rows = 16;
  options.max_rows = 48;
  return options;
}

class CudaStepShapeTest : public testing::TestWithParam<uint32_t> {};

// A long prompt, then short ones, then single tokens, over the ring's end.
TEST_P(CudaStepShapeTest, HasTheNumbersOfTheNativeStepForCpus) {
  const RandomCase model = MakeRandomCase(GetParam());
  const int64_t length = static_cast<int64_t>(model.tokens.size());
  auto step = MakeCudaStep(model, Options(1));
  auto oracle = MakeOracle(model, 1);
  int64_t position = 0;
  for (const int64_t cut : {16, 16, 5, 3, 1, 1, 16, 16, 16, 16, 1, 2}) {
    const int64_t end = std::min(length, position + cut);
    EXPECT_LE(
        WorstDifference(FeedRows(*step, 0, model.tokens, position, end, cut),
                        FeedRows(*oracle, 0, model.tokens, position, end, 1)),
        kTolerance)
        << "from " << position << " of " << model.Describe();
    position = end;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaStepShapeTest,
                         testing::Range(uint32_t{0}, kShapes));

TEST(CudaStepShapesTest, CoverEveryChoice) {
  std::set<std::string> seen;
  for (uint32_t seed = 0; seed < kShapes; ++seed) {
    const ModelConfig config = RandomConfig(seed);
    seen.insert(config.norm == NormPlacement::kPre ? "pre" : "post");
    seen.insert(config.norm == NormPlacement::kPre && config.final_norm
                    ? "pre and final"
                    : "");
    seen.insert(config.mem_init == MemoryInit::kZeros ? "zeros" : "empty");
    seen.insert(config.mem_init == MemoryInit::kZeros &&
                        config.norm == NormPlacement::kPre
                    ? "start rows"
                    : "");
    seen.insert(config.pos == PositionKind::kTable ? "table" : "sinusoids");
    seen.insert(config.clamp_len.has_value() ? "clamp" : "no clamp");
    seen.insert(config.serving_window() <= config.mem_len ? "window" : "all");
    seen.insert(config.n_bins() > 1 ? "bins" : "one bin");
    seen.insert(config.d_embed != config.d_model ? "projection" : "");
  }
  for (const char* choice :
       {"pre", "post", "pre and final", "zeros", "empty", "start rows", "table",
        "sinusoids", "clamp", "no clamp", "window", "all", "bins", "one bin",
        "projection"}) {
    EXPECT_TRUE(seen.contains(choice)) << choice;
  }
}

// Rows of a plan: random sessions feed random numbers of tokens.
struct Plan {
  struct Part {
    int32_t slot;
    int64_t position;
    int64_t count;
  };
  std::vector<std::vector<Part>> steps;
};

Plan RandomPlan(int32_t sessions, int64_t length, uint32_t seed) {
  std::mt19937 random(seed);
  Plan plan;
  std::vector<int64_t> position(sessions);
  while (*std::min_element(position.begin(), position.end()) < length) {
    std::vector<Plan::Part> step;
    for (int32_t slot = 0; slot < sessions; ++slot) {
      const int64_t most = random() % 3 == 0 ? random() % 12 : 1;
      const int64_t count = std::min(most, length - position[slot]);
      if (count == 0) continue;
      step.push_back({slot, position[slot], count});
      position[slot] += count;
    }
    std::shuffle(step.begin(), step.end(), random);
    if (!step.empty()) plan.steps.push_back(step);
  }
  return plan;
}

// Log-probabilities of every row, per session, in order of positions.
std::vector<std::vector<float>> RunPlan(ModelStep& step, const Plan& plan,
                                        const RandomCase& model,
                                        int32_t sessions) {
  const std::vector<int32_t> ticks = TicksBefore(step.beats(), model.tokens);
  std::vector<std::vector<float>> seen(sessions);
  for (const std::vector<Plan::Part>& parts : plan.steps) {
    std::vector<StepSegment> segments;
    std::vector<std::vector<int32_t>> outputs;
    for (const Plan::Part& part : parts) {
      outputs.emplace_back(part.count);
      std::iota(outputs.back().begin(), outputs.back().end(), 0);
      segments.push_back(
          {part.slot, part.position,
           absl::MakeSpan(model.tokens).subspan(part.position, part.count),
           outputs.back(),
           absl::MakeSpan(ticks).subspan(part.position, part.count)});
    }
    const std::vector<float> rows = LogprobsOf(step, step.Run(segments));
    auto row = rows.begin();
    for (const Plan::Part& part : parts) {
      const auto end = row + part.count * model.config.vocab_size;
      seen[part.slot].insert(seen[part.slot].end(), row, end);
      row = end;
    }
  }
  return seen;
}

class CudaStepTest : public testing::Test {
 protected:
  const RandomCase model_ = PromiseCase();
};

TEST_F(CudaStepTest, SessionsInOneStepHaveTheirOwnNumbersAndTheSameBitsAgain) {
  constexpr int32_t kSessions = 3;
  constexpr int64_t kLength = 45;
  auto oracle = MakeOracle(model_, 1);
  const std::vector<float> expected =
      FeedRows(*oracle, 0, model_.tokens, 0, kLength, 1);
  const Plan plan = RandomPlan(kSessions, kLength, 7);
  std::vector<std::vector<float>> first;
  for (const uint64_t order : {1, 2}) {
    cuda::ShuffleThreads(order);
    auto step = MakeCudaStep(model_, Options(kSessions));
    const auto seen = RunPlan(*step, plan, model_, kSessions);
    for (const std::vector<float>& logprobs : seen) {
      EXPECT_LE(WorstDifference(logprobs, expected), kTolerance);
    }
    if (order == 1) first = seen;
    EXPECT_EQ(seen, first);
  }
}

// Prompts and tokens in turn: kernels of all kinds follow each other. Only a
// device does run two at a time.
TEST_F(CudaStepTest, KernelsThatOverlapGiveTheBitsOfThoseThatDoNot) {
  constexpr int32_t kSessions = 3;
  const Plan plan = RandomPlan(kSessions, 45, 8);
  CudaStepOptions options = Options(kSessions);
  options.overlapped_rows = 0;
  auto one_by_one = MakeCudaStep(model_, options);
  options.overlapped_rows = kMostCudaRows;
  auto overlapping = MakeCudaStep(model_, options);
  EXPECT_EQ(RunPlan(*overlapping, plan, model_, kSessions),
            RunPlan(*one_by_one, plan, model_, kSessions));
}

// More rows than small steps have; a prompt over the end of the ring.
TEST_F(CudaStepTest, LongPromptsHaveTheSameNumbers) {
  CudaStepOptions options = Options(1);
  options.spare_rows = 60;
  options.max_rows = 60;
  auto step = MakeCudaStep(model_, options);
  auto oracle = MakeOracle(model_, 1);
  EXPECT_LE(WorstDifference(FeedRows(*step, 0, model_.tokens, 0, 70, 55),
                            FeedRows(*oracle, 0, model_.tokens, 0, 70, 16)),
            kTolerance);
}

TEST_F(CudaStepTest, ADiscardedStepLeavesNoTrace) {
  constexpr int64_t kLength = 40;
  auto plain = MakeCudaStep(model_, Options(1));
  auto step = MakeCudaStep(model_, Options(1));
  std::mt19937 random(1);
  for (int64_t t = 0; t < kLength; t += 4) {
    // Other tokens at the positions from t on, up to the spare rows.
    std::vector<int32_t> other(1 + random() % 16);
    for (int32_t& id : other) {
      id = static_cast<int32_t>(random() % model_.config.vocab_size);
    }
    const StepSegment discarded = {0, t, other, {}};
    EXPECT_TRUE(step->Run({&discarded, 1}).empty());
    ASSERT_EQ(FeedRows(*step, 0, model_.tokens, t, t + 4, 4),
              FeedRows(*plain, 0, model_.tokens, t, t + 4, 4))
        << "position " << t;
  }
}

TEST_F(CudaStepTest, MovedStatesGoOnWithTheSameBits) {
  for (const int64_t cut : {1, 13, 60}) {
    auto step = MakeCudaStep(model_, Options(4));
    FeedRows(*step, 0, model_.tokens, 0, cut, 16);
    const StateImage image = step->Export(0, cut);
    ASSERT_TRUE(step->Import(2, image).ok());
    step->Copy(2, 1);
    EXPECT_EQ(step->Export(1, cut).data, image.data);
    const int64_t end = cut + 6;
    const std::vector<float> expected =
        FeedRows(*step, 0, model_.tokens, cut, end, 3);
    for (const int32_t slot : {1, 2}) {
      EXPECT_EQ(FeedRows(*step, slot, model_.tokens, cut, end, 3), expected)
          << "moved at " << cut;
    }
  }
}

TEST_F(CudaStepTest, AClearedSlotBeginsAgain) {
  auto step = MakeCudaStep(model_, Options(2));
  const std::vector<float> expected =
      FeedRows(*step, 0, model_.tokens, 0, 20, 10);
  FeedRows(*step, 1, model_.tokens, 20, 36, 16);
  step->Clear(1);
  EXPECT_EQ(FeedRows(*step, 1, model_.tokens, 0, 20, 10), expected);
}

TEST_F(CudaStepTest, OnlyWantedRowsComeBackInOrder) {
  auto step = MakeCudaStep(model_, Options(2));
  const std::vector<float> all = FeedRows(*step, 0, model_.tokens, 0, 10, 10);
  const std::vector<int32_t> wanted = {2, 9};
  const std::vector<int32_t> ticks = TicksBefore(step->beats(), model_.tokens);
  const StepSegment segment = {1, 0, absl::MakeSpan(model_.tokens).first(10),
                               wanted, absl::MakeSpan(ticks).first(10)};
  const auto rows = step->Run({&segment, 1});
  ASSERT_EQ(rows.size(), 2u);
  const int64_t vocabulary = model_.config.vocab_size;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<float> row;
    AppendLogprobs(*rows[i], row);
    const auto first = all.begin() + wanted[i] * vocabulary;
    const std::vector<float> expected(first, first + vocabulary);
    // The head is evaluated for two rows instead of ten.
    EXPECT_LE(WorstDifference(row, expected), kTolerance);
  }
}

// More rows than a cluster is evaluated for at once.
TEST_F(CudaStepTest, ClustersEvaluatedTogetherHaveTheSameBits) {
  auto step = MakeCudaStep(model_, Options(2));
  std::vector<std::vector<float>> seen;
  for (const bool together : {false, true}) {
    std::vector<StepSegment> segments;
    std::vector<int32_t> outputs(10);
    std::iota(outputs.begin(), outputs.end(), 0);
    for (const int32_t slot : {0, 1}) {
      segments.push_back(
          {slot, 0, absl::MakeSpan(model_.tokens).subspan(slot, 10), outputs});
    }
    const auto rows = step->Run(segments);
    if (together) {
      std::vector<ClusterOfRow> clusters = {{3, 1}};
      for (int64_t row = 0; row < 20; ++row) clusters.push_back({row, 1});
      step->EvaluateClusters(clusters);
    }
    seen.emplace_back();
    for (NextTokenDistribution* row : rows) AppendLogprobs(*row, seen.back());
  }
  EXPECT_EQ(seen[0], seen[1]);
}

// A session whose numbers ran away leaves its neighbours alone, and is well
// again after Clear.
TEST_F(CudaStepTest, NumbersThatRanAwayStayInTheirSlot) {
  constexpr int32_t kBad = 59;
  RandomCase model = PromiseCase();
  for (int32_t& id : model.tokens) id = id == kBad ? 1 : id;
  auto healthy = MakeCudaStep(model, Options(2));
  model.weights.embedding[2].w = model.weights.embedding[2].w.clone();
  model.weights.embedding[2].w[kBad - 41].fill_(
      std::numeric_limits<float>::quiet_NaN());
  auto step = MakeCudaStep(model, Options(2));
  const std::vector<int32_t> bad(12, kBad);
  const std::vector<int32_t> last = {11};
  const auto run = [&](ModelStep& of, const std::vector<int32_t>& first) {
    const std::vector<StepSegment> both = {
        {0, 0, absl::MakeSpan(first).first(12), last},
        {1, 0, absl::MakeSpan(model.tokens).first(12), last}};
    const auto rows = of.Run(both);
    std::vector<float> seen;
    AppendLogprobs(*rows[1], seen);
    return std::make_pair(rows[0]->Words()[0], seen);
  };
  const auto expected = run(*healthy, model.tokens);
  const auto found = run(*step, bad);
  EXPECT_TRUE(std::isnan(found.first));
  EXPECT_EQ(found.second, expected.second);
  step->Clear(0);
  EXPECT_EQ(FeedRows(*step, 0, model.tokens, 0, 12, 12),
            FeedRows(*healthy, 0, model.tokens, 0, 12, 12));
}

}  // namespace
}  // namespace txl
