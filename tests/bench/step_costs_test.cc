#include "tests/bench/step_costs.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

// The WikiText-103-large shape of wt103_large.json, with a window of M + 1.
ModelConfig Wt103Large() {
  ModelConfig config;
  config.vocab_size = 267735;
  config.n_layer = 18;
  config.n_head = 16;
  config.d_head = 64;
  config.d_model = 1024;
  config.d_embed = 1024;
  config.d_inner = 4096;
  config.clamp_len = 1000;
  config.mem_len = 1600;
  config.cutoffs = {20000, 40000, 200000};
  config.div_val = 4;
  config.emb_proj_bin0 = true;
  return config;
}

// 2 layers, H D = 6 beside d = 8, one bin without projection.
ModelConfig Tiny() {
  ModelConfig config;
  config.vocab_size = 10;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 3;
  config.d_model = 8;
  config.d_embed = 8;
  config.d_inner = 16;
  config.mem_len = 4;
  return config;
}

StepWork Work(int64_t sessions, NumberFormat derived = NumberFormat::kF32) {
  StepWork work;
  work.formats.derived = derived;
  work.sessions = sessions;
  return work;
}

TEST(StepCostsTest, TinyModelByHand) {
  const StepCosts costs = DecodeCosts(Tiny(), Work(3));
  // 2 layers x (4 x 8 x 6 + 2 x 8 x 16) = 896 numbers.
  EXPECT_EQ(costs.weights.bytes, 896 * 4);
  EXPECT_EQ(costs.weights.flops, 2 * 896 * 3);
  EXPECT_EQ(costs.softmax.bytes, 10 * 8 * 4);
  EXPECT_EQ(costs.softmax.flops, 2 * 80 * 3);
  // 4 rows of a key and a value of 6 numbers, 2 layers, 3 sessions.
  EXPECT_EQ(costs.attention.bytes, 4 * 2 * 6 * 4 * 2 * 3);
  // 5 keys, each multiplied and added for score and sum.
  EXPECT_EQ(costs.attention.flops, 5 * 4 * 6 * 2 * 3);
  // Distances 0..4.
  EXPECT_EQ(costs.distances.bytes, 5 * 6 * 4 * 2);
  EXPECT_EQ(costs.distances.flops, 2 * 5 * 6 * 2 * 3);
  EXPECT_EQ(costs.bytes(), costs.weights.bytes + costs.softmax.bytes +
                               costs.attention.bytes + costs.distances.bytes);
  EXPECT_EQ(costs.flops(), costs.weights.flops + costs.softmax.flops +
                               costs.attention.flops + costs.distances.flops);
}

TEST(StepCostsTest, SegmentsReadEachMemoryOnceAndComputeEveryRow) {
  const StepCosts costs = ScoreCosts(Tiny(), Work(3), 7);
  EXPECT_EQ(costs.weights.bytes, 896 * 4);
  EXPECT_EQ(costs.weights.flops, 2 * 896 * 21);
  EXPECT_EQ(costs.softmax.flops, 2 * 80 * 21);
  EXPECT_EQ(costs.attention.bytes, 4 * 2 * 6 * 4 * 2 * 3);
  EXPECT_EQ(costs.attention.flops, 5 * 4 * 6 * 2 * 21);
  EXPECT_EQ(costs.distances.flops, 2 * 5 * 6 * 2 * 21);
}

TEST(StepCostsTest, FormatsChangeBytesOfTheirPhaseOnly) {
  StepWork work = Work(3);
  const StepCosts plain = DecodeCosts(Tiny(), work);
  work.formats.weights = NumberFormat::kInt8;
  work.formats.derived = NumberFormat::kF16;
  work.formats.memory = NumberFormat::kBF16;  // not read in this form
  const StepCosts small = DecodeCosts(Tiny(), work);
  EXPECT_EQ(small.weights.bytes, plain.weights.bytes / 4);
  EXPECT_EQ(small.softmax.bytes, plain.softmax.bytes / 4);
  EXPECT_EQ(small.attention.bytes, plain.attention.bytes / 2);
  EXPECT_EQ(small.distances.bytes, plain.distances.bytes / 2);
  EXPECT_EQ(small.flops(), plain.flops());
}

TEST(StepCostsTest, WordsHaveNoFewerThan8Bits) {
  StepWork work = Work(3);
  work.formats.weights = NumberFormat::kInt8;
  const StepCosts of_8 = DecodeCosts(Tiny(), work);
  work.formats.weights = NumberFormat::kInt4;
  const StepCosts of_4 = DecodeCosts(Tiny(), work);
  EXPECT_EQ(of_4.weights.bytes, of_8.weights.bytes / 2);
  EXPECT_EQ(of_4.softmax.bytes, of_8.softmax.bytes);
}

TEST(StepCostsTest, AbsorbedFormReadsStoredRowsOncePerSession) {
  StepWork work = Work(3);
  work.form = AttentionForm::kAbsorbed;
  work.formats.memory = NumberFormat::kBF16;
  const StepCosts costs = DecodeCosts(Tiny(), work);
  EXPECT_EQ(costs.attention.bytes, 4 * 8 * 2 * 2 * 3);
  EXPECT_EQ(costs.attention.flops, 5 * 4 * 2 * 8 * 2 * 3);
  EXPECT_EQ(costs.weights.bytes, DecodeCosts(Tiny(), Work(3)).weights.bytes);
}

TEST(StepCostsTest, WindowAndClampBoundKeysAndDistances) {
  ModelConfig config = Tiny();
  config.window = 4;
  config.clamp_len = 1;
  const StepCosts costs = DecodeCosts(config, Work(1));
  EXPECT_EQ(costs.attention.bytes, 3 * 2 * 6 * 4 * 2);
  EXPECT_EQ(costs.attention.flops, 4 * 4 * 6 * 2);
  EXPECT_EQ(costs.distances.bytes, 2 * 6 * 4 * 2);
}

TEST(StepCostsTest, TailsAreReadWhenAnySessionNeedsThem) {
  ModelConfig config = Tiny();
  config.cutoffs = {4, 7};
  config.div_val = 2;  // widths 8, 4, 2
  StepWork work = Work(2);
  const double head = 8 * (4 + 2);
  EXPECT_EQ(DecodeCosts(config, work).softmax.bytes, head * 4);
  work.tail_share = 0.5;  // a quarter for each tail
  const double tails = (4 * 3 + 4 * 8) + (2 * 3 + 2 * 8);
  const StepCosts costs = DecodeCosts(config, work);
  EXPECT_DOUBLE_EQ(costs.softmax.bytes, 4 * (head + tails * (1 - 0.75 * 0.75)));
  EXPECT_DOUBLE_EQ(costs.softmax.flops, 2 * 2 * (head + 0.25 * tails));
}

// Table of the published constants of this shape: 226.5 M numbers in layers,
// 21.5 M in the head, 235.9 MB of keys and values, 0.118 GFLOP.
TEST(StepCostsTest, Wt103LargeHasItsPublishedSizes) {
  const StepCosts costs = DecodeCosts(Wt103Large(), Work(1));
  EXPECT_NEAR(costs.weights.flops / 2, 226.5e6, 0.1e6);
  EXPECT_NEAR(costs.softmax.flops / 2, 21.5e6, 0.1e6);
  EXPECT_NEAR(costs.attention.bytes, 235.9e6, 0.1e6);
  EXPECT_NEAR(costs.attention.flops, 0.118e9, 0.001e9);
  // 1001 distances of 1024 numbers in 18 layers.
  EXPECT_NEAR(costs.distances.bytes, 73.8e6, 0.1e6);
}

// At 46.5 GB/s and 440 GFLOP/s, worked out by hand from those sizes:
//   1 session:   19.5 weights + 1.8 head + 5.1 memory       = 26.4 ms
//   8 sessions:  19.5 + 1.8 + 40.6                          = 61.9 ms
//   32 sessions: 32.9 (FLOPs) + 3.1 (FLOPs) + 162.4         = 198.4 ms
// and 1.6 ms for the table of positional keys, 2.7 at 32 sessions. With keys
// and values in half the memory's and the table's times are halved, until the
// table's FLOPs take longer.
TEST(StepCostsTest, PhasesAddedAreTheHandComputedRates) {
  const MachineRates rates = {46.5e9, 440e9};
  const auto tokens_per_second = [&](int64_t sessions, NumberFormat derived,
                                     bool with_table) {
    StepCosts costs = DecodeCosts(Wt103Large(), Work(sessions, derived));
    if (!with_table) costs.distances = {};
    return static_cast<double>(sessions) / PhasesAddedSeconds(costs, rates);
  };
  const NumberFormat f32 = NumberFormat::kF32, f16 = NumberFormat::kF16;
  EXPECT_NEAR(tokens_per_second(1, f32, false), 38, 0.5);
  EXPECT_NEAR(tokens_per_second(8, f32, false), 130, 2);
  EXPECT_NEAR(tokens_per_second(32, f32, false), 160, 3);
  EXPECT_NEAR(tokens_per_second(1, f16, false), 42, 0.5);
  EXPECT_NEAR(tokens_per_second(8, f16, false), 190, 5);
  EXPECT_NEAR(tokens_per_second(32, f16, false), 270, 5);
  EXPECT_NEAR(tokens_per_second(1, f32, true), 1e3 / (26.4 + 1.6), 0.3);
  EXPECT_NEAR(tokens_per_second(8, f32, true), 8e3 / (61.9 + 1.6), 1);
  EXPECT_NEAR(tokens_per_second(32, f32, true), 32e3 / (198.4 + 2.7), 1);
}

TEST(StepCostsTest, APhaseTakesTheLongerOfReadingAndComputing) {
  StepCosts costs;
  costs.weights = {100, 10};
  costs.attention = {10, 200};
  EXPECT_DOUBLE_EQ(PhasesAddedSeconds(costs, {10, 20}), 10 + 10);
}

TEST(StepCostsTest, PromptFlopsCountTheKeysThatAreSeen) {
  ModelConfig config = Tiny();  // window 5
  const double weights = 2 * 896;
  const double key = 2 * 6 * (4 + 2);  // layers x H D x (attention, distance)
  EXPECT_EQ(PromptFlops(config, 0, 3), 3 * weights + (1 + 2 + 3) * key);
  EXPECT_EQ(PromptFlops(config, 100, 3), 3 * (weights + 5 * key));
  EXPECT_EQ(PromptFlops(config, 0, 3) + PromptFlops(config, 3, 4),
            PromptFlops(config, 0, 7));
  config.mem_init = MemoryInit::kZeros;  // the zero rows are seen too
  EXPECT_EQ(PromptFlops(config, 0, 1), weights + 5 * key);
  config.clamp_len = 1;
  EXPECT_EQ(PromptFlops(config, 0, 1), weights + 2 * 6 * (4 * 5 + 2 * 2));
}

}  // namespace
}  // namespace txl
