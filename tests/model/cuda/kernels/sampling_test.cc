#include "model/cuda/kernels/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/kernels/sampling_rows.h"

namespace txl::cuda {
namespace {

using ::testing::ElementsAre;

constexpr float kNever = -std::numeric_limits<float>::infinity();

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

// Bins of 2, 2 and 3 words: word probabilities 0.3 and 0.1, clusters of 0.4
// (0.32 and 0.08) and 0.2 (0.1, 0.05, 0.05).
const VocabularyBins& SmallBins() {
  static const VocabularyBins* const bins = new VocabularyBins{{2, 4, 7}};
  return *bins;
}
RowToSample SmallRow() {
  RowToSample row;
  for (const double p : {0.3, 0.1, 0.4, 0.2}) row.head.push_back(std::log(p));
  row.params.penalty_window = 8;
  row.clusters = {{std::log(0.32f), std::log(0.08f)},
                  {std::log(0.1f), std::log(0.05f), std::log(0.05f)}};
  return row;
}
SampledToken SampleOne(const RowToSample& row, int rounds = 1) {
  StepOptions options;
  options.rounds = rounds;
  return SampleOnDevice(SmallBins(), {row}, options)[0];
}

// The long test has tens of thousands of them.
TEST(SamplingTest, RandomRowsGetTheHostsTokens) {
  std::mt19937 random(1);
  for (const VocabularyBins& bins : ManyBins()) {
    for (int step = 0; step < 4; ++step) {
      StepOptions options;
      const int clusters = static_cast<int>(bins.clusters());
      options.rounds = clusters == 0 ? 0 : 1 + step % (clusters + 1);
      std::vector<RowToSample> rows;
      for (int r = 0; r < 20; ++r) rows.push_back(AnyRow(random, bins));
      ShuffleThreads(step);
      ExpectAsOnHost(bins, rows, options);
    }
  }
}

TEST(SamplingTest, BlocksOfFullSizeGetTheHostsTokens) {
  std::mt19937 random(2);
  const VocabularyBins bins{{2000, 5001}};
  std::vector<RowToSample> rows;
  for (int r = 0; r < 5; ++r) rows.push_back(AnyRow(random, bins));
  StepOptions options;
  options.threads = kSamplingThreads;
  ExpectAsOnHost(bins, rows, options);
}

TEST(SamplingTest, TheLongestListsThatARequestCanHaveAreTheHostsToo) {
  std::mt19937 random(6);
  const VocabularyBins bins{{1500, 6000}};
  StepOptions options;
  options.limits = SamplingLimits();
  RowToSample row = RandomRow(random, bins, 2);
  for (int i = 0; i < options.limits.recent; ++i) {
    row.recent_ids.push_back(static_cast<int32_t>(random() % 3000));
  }
  row.forgotten = 1234;
  row.params.penalty_window = options.limits.recent;
  row.params.repetition_penalty = 1.2;
  row.params.frequency_penalty = 0.1;
  for (int i = 0; i < options.limits.biases; ++i) {
    row.params.logit_bias[5 * i] = i % 7 - 3;
  }
  for (int i = 0; i < options.limits.banned; ++i) row.banned_ids.push_back(i);
  for (int i = 0; i < options.limits.allowed; ++i) {
    row.params.allowed_token_ids.push_back(4 * i + 1);
  }
  for (int i = 0; i < kMaxNamedIds; ++i) row.named.push_back(300 * i);
  row.top_count = kMaxTopLogprobs;
  row.min_position = 100;
  std::vector<RowToSample> rows(4, row);
  for (int r = 0; r < 4; ++r) rows[r].position = r + 1;
  rows[3].params.temperature = 0;
  ExpectAsOnHost(bins, rows, options);
}

TEST(SamplingTest, OrdersOfThreadsChangeNothing) {
  std::mt19937 random(3);
  const VocabularyBins bins{{40, 400, 700}};
  std::vector<RowToSample> rows;
  for (int r = 0; r < 30; ++r) rows.push_back(AnyRow(random, bins));
  ShuffleThreads(1);
  const std::vector<SampledToken> first = SampleOnDevice(bins, rows, {});
  ShuffleThreads(2);
  const std::vector<SampledToken> second = SampleOnDevice(bins, rows, {});
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(first[r].token, second[r].token);
    EXPECT_EQ(first[r].logprob, second[r].logprob);
    EXPECT_EQ(first[r].evaluated, second[r].evaluated);
    EXPECT_EQ(first[r].recent_ids, second[r].recent_ids);
  }
}

TEST(SamplingTest, GreedyAsksForClustersThatCanHoldTheBestWord) {
  RowToSample row = SmallRow();
  row.params = Greedy();
  const SampledToken sampled = SampleOne(row);
  EXPECT_EQ(sampled.token, 2);
  EXPECT_EQ(sampled.evaluated, 1u);
  row.head = {std::log(0.5f), std::log(0.1f), std::log(0.3f), std::log(0.1f)};
  EXPECT_EQ(SampleOne(row).token, 0);
  EXPECT_EQ(SampleOne(row).evaluated, 0u);
}

TEST(SamplingTest, TopKAsksForClustersThatReachTheKthBestOfTheHead) {
  RowToSample row = SmallRow();
  row.params.top_k = 1;
  EXPECT_EQ(SampleOne(row).evaluated, 1u);  // 0.4 >= 0.3 > 0.2
  row.params.top_k = 2;
  EXPECT_EQ(SampleOne(row).evaluated, 3u);  // 0.2 >= 0.1
  row.params.top_k = 3;
  EXPECT_EQ(SampleOne(row).evaluated, 3u);  // the head has only two words
}

TEST(SamplingTest, MinPAsksForClustersThatReachItsShareOfTheBestWord) {
  RowToSample row = SmallRow();
  row.params.min_p = 0.6;  // of 0.3: 0.18
  EXPECT_EQ(SampleOne(row).evaluated, 3u);
  row.params.min_p = 0.7;
  EXPECT_EQ(SampleOne(row).evaluated, 1u);
}

TEST(SamplingTest, FiltersOfTheWholeDistributionAskForAllClusters) {
  for (const auto set : {+[](SamplingParams& p) { p.top_p = 0.1; },
                         +[](SamplingParams& p) { p.typical_p = 0.1; },
                         +[](SamplingParams& p) { p.presence_penalty = 1; },
                         +[](SamplingParams& p) { p.logit_bias[0] = 9; }}) {
    RowToSample row = SmallRow();
    set(row.params);
    EXPECT_EQ(SampleOne(row).evaluated, 3u);
  }
}

TEST(SamplingTest, AllowedIdsAskForTheirClustersOnly) {
  RowToSample row = SmallRow();
  SamplingParams bounded;
  bounded.top_k = 1;
  for (const SamplingParams& params : {SamplingParams(), Greedy(), bounded}) {
    row.params = params;
    row.params.allowed_token_ids = {1};
    EXPECT_EQ(SampleOne(row).token, 1);
    EXPECT_EQ(SampleOne(row).evaluated, 0u);
    row.params.allowed_token_ids = {5};
    EXPECT_EQ(SampleOne(row).token, 5);
    EXPECT_EQ(SampleOne(row).evaluated, 2u);
    EXPECT_EQ(SampleOne(row).logprob, std::log(0.05f));  // the model's own
    // Words 2 and 3 are the other cluster's.
    row.params.allowed_token_ids = {6, 0};
    row.banned_ids = {6};
    row.min_position = 9;
    EXPECT_EQ(SampleOne(row).token, 0);
    row.banned_ids.clear();
  }
}

// Ids 0 and 5 are of kind A, 1 and 6 of B, 2 of C, 3 of D, 4 of none.
TEST(SamplingTest, KindsAreThoseBehindTheLastIdAndAskForAllClusters) {
  RowToSample row = SmallRow();
  row.params = Greedy();
  const auto best_behind = [&](std::vector<int32_t> recent) {
    row.recent_ids = std::move(recent);
    const SampledToken sampled = SampleOne(row);
    EXPECT_EQ(sampled.evaluated, 3u);
    EXPECT_EQ(sampled.recent_ids.back(), sampled.token);
    return sampled.token;
  };
  row.params.follow_kinds = true;
  EXPECT_EQ(best_behind({1}), 2);     // A, C
  EXPECT_EQ(best_behind({1, 0}), 0);  // A, B, D: 0.3, 0.1, 0.08, 0.05 twice
  row.params.allowed_token_ids = {3, 4, 6};
  EXPECT_EQ(best_behind({5}), 3);
  EXPECT_EQ(best_behind({3}), 6);  // A, B, C
  EXPECT_EQ(best_behind({2}), 4);  // all; id 4 is 0.1
  row.recent_ids = {1};
  EXPECT_EQ(SampleOne(row).status, SampleStatus::kNothingLeft);
  EXPECT_EQ(SampleOne(row).last_sampled, -1);
  row.target = 3;  // a score follows no kinds
  EXPECT_EQ(SampleOne(row).token, 3);
}

TEST(SamplingTest, KindsHaveTheHostsTokensBehindEveryIdOfAFullRing) {
  std::mt19937 random(12);
  const VocabularyBins bins{{9, 14, 40}};
  for (const double temperature : {0.0, 0.7, 1.0, 1.6}) {
    std::vector<RowToSample> rows;
    for (int32_t last = 0; last < 40; ++last) {
      RowToSample row = RandomRow(random, bins, 2);
      row.params.temperature = temperature;
      row.params.follow_kinds = true;
      row.params.penalty_window = 0;
      if (last % 3 == 0) row.params.top_k = 4;
      if (last % 4 == 0) row.params.typical_p = 0.6;
      if (last % 5 == 0) row.params.logit_bias = {{1, 3.0}, {7, 2.0}};
      row.recent_ids = std::vector<int32_t>(33, 39 - last);
      row.recent_ids.back() = last;
      row.forgotten = last;
      row.position = 100 + last;
      rows.push_back(row);
    }
    ExpectAsOnHost(bins, rows, {});
  }
}

TEST(SamplingTest, NamedWordsAskForTheirClustersAndStandBehindTheBest) {
  RowToSample row = SmallRow();
  row.params = Greedy();
  row.params.allowed_token_ids = {0};
  row.named = {6, 1, 6};
  const SampledToken alone = SampleOne(row);
  EXPECT_EQ(alone.token, 0);
  EXPECT_EQ(alone.evaluated, 2u);
  ASSERT_EQ(alone.top.size(), 3u);
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(alone.top[i].token_id, 6);
    EXPECT_EQ(alone.top[i].logprob, std::log(0.05f));
  }
  EXPECT_EQ(alone.top[1].token_id, 1);
  EXPECT_EQ(alone.top[1].logprob, row.head[1]);
  row.top_count = 1;
  row.target = 1;
  const SampledToken scored = SampleOne(row);
  EXPECT_EQ(scored.evaluated, 3u);
  ASSERT_EQ(scored.top.size(), 4u);
  EXPECT_EQ(scored.top[0].token_id, 2);
  EXPECT_EQ(scored.top[1].token_id, 6);
}

TEST(SamplingTest, ADrawAtTemperatureOneAsksForTheClusterThatItHits) {
  int hits = 0;
  for (int position = 1; position < 60; ++position) {
    RowToSample row = SmallRow();
    row.position = position;
    const SampledToken sampled = SampleOne(row);
    const uint32_t expected = sampled.token < 2   ? 0u
                              : sampled.token < 4 ? 1u
                                                  : 2u;
    EXPECT_EQ(sampled.evaluated, expected);
    hits += expected != 0 ? 1 : 0;
  }
  EXPECT_GT(hits, 15);
  EXPECT_LT(hits, 55);
}

TEST(SamplingTest, MoreRoundsAskForLessAndGiveTheSameTokens) {
  std::mt19937 random(4);
  const VocabularyBins bins{{4, 30, 60, 90}};
  std::vector<RowToSample> rows;
  for (int r = 0; r < 60; ++r) {
    rows.push_back(RandomRow(random, bins, 1));
    rows.back().params.temperature = 0.6;
    rows.back().position = r + 1;
  }
  std::vector<int32_t> tokens;
  std::vector<int> asked;
  for (const int rounds : {1, 2, 3}) {
    StepOptions options;
    options.rounds = rounds;
    asked.push_back(0);
    std::vector<int32_t> sampled_tokens;
    for (const SampledToken& sampled : SampleOnDevice(bins, rows, options)) {
      sampled_tokens.push_back(sampled.token);
      for (int c = 0; c < 3; ++c) asked.back() += sampled.evaluated >> c & 1;
    }
    if (rounds == 1) tokens = sampled_tokens;
    EXPECT_EQ(sampled_tokens, tokens);
  }
  EXPECT_GT(asked[0], asked[1]);
  EXPECT_GE(asked[1], asked[2]);
}

// More equal words than are ever listed: borders among them go by id.
TEST(SamplingTest, ManyEqualWordsAreKeptInOrderOfId) {
  const VocabularyBins bins{{1000}};
  std::vector<RowToSample> rows;
  for (int position = 1; position < 30; ++position) {
    RowToSample row;
    row.head.assign(1000, std::log(1e-3f));
    row.head[7] = row.head[8] = kNever;
    row.position = position;
    if (position % 3 == 0) row.params.top_k = 400;
    if (position % 3 == 1) row.params.top_p = 0.4;
    if (position % 3 == 2) row.params.typical_p = 0.4;
    rows.push_back(row);
  }
  StepOptions options;
  options.rounds = 0;
  ExpectAsOnHost(bins, rows, options);
  for (const SampledToken& sampled : SampleOnDevice(bins, rows, options)) {
    EXPECT_LT(sampled.token, 402);
  }
}

TEST(SamplingTest, SmallestTemperaturesAreGreedy) {
  RowToSample row = SmallRow();
  for (const double temperature : {1e-3, 1e-100, 1e-310}) {
    row.params.temperature = temperature;
    EXPECT_EQ(SampleOne(row).token, 2) << temperature;
  }
}

TEST(SamplingTest, NumbersThatAreNotFiniteAreReported) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {nan, -nan, -kNever}) {
    for (const size_t at : {0, 1, 3}) {  // a mass at last
      for (const SamplingParams& params : {SamplingParams(), Greedy()}) {
        RowToSample row = SmallRow();
        row.params = params;
        row.head[at] = bad;
        const SampledToken sampled = SampleOne(row);
        EXPECT_EQ(sampled.status, SampleStatus::kNotFinite);
        EXPECT_EQ(sampled.token, -1);
        EXPECT_EQ(sampled.last_sampled, -1);
      }
    }
    RowToSample row = SmallRow();
    row.clusters[1][2] = bad;
    row.params.top_p = 0.5;
    EXPECT_EQ(SampleOne(row).status, SampleStatus::kNotFinite);
    row.params.follow_kinds = true;  // also where no kind lets it follow
    row.recent_ids = {1};
    EXPECT_EQ(SampleOne(row).status, SampleStatus::kNotFinite);
    row.params.follow_kinds = false;
    row.params.allowed_token_ids = {4};  // its words are looked at
    EXPECT_EQ(SampleOne(row).status, SampleStatus::kNotFinite);
    row.params = Greedy();  // does not look there
    EXPECT_EQ(SampleOne(row).status, SampleStatus::kOk);
    row.target = 6;
    EXPECT_EQ(SampleOne(row).status, SampleStatus::kNotFinite);
  }
}

TEST(SamplingTest, BannedWordsThatAreNotFiniteAreReportedToo) {
  RowToSample row = SmallRow();
  row.head[1] = std::numeric_limits<float>::quiet_NaN();
  row.banned_ids = {1};
  row.min_position = 9;
  EXPECT_EQ(SampleOne(row).status, SampleStatus::kNotFinite);
}

TEST(SamplingTest, WithoutAPossibleTokenNothingIsLeft) {
  RowToSample row = SmallRow();
  row.banned_ids = {0, 1, 2, 3, 4, 5, 6};
  row.min_position = 9;
  SamplingParams filtered;
  filtered.top_k = 2;
  for (const SamplingParams& params : {SamplingParams(), Greedy(), filtered}) {
    row.params = params;
    EXPECT_EQ(SampleOne(row).status, SampleStatus::kNothingLeft);
    EXPECT_EQ(SampleOne(row).token, -1);
  }
}

TEST(SamplingTest, ASampledTokenEntersItsSlot) {
  RowToSample row = SmallRow();
  row.params = Greedy();
  row.recent_ids = {5, 6};
  const SampledToken sampled = SampleOne(row);
  EXPECT_EQ(sampled.last_sampled, 2);
  EXPECT_THAT(sampled.recent_ids, ElementsAre(5, 6, 2));
  row.recent_ids.assign(StepOptions().limits.recent, 4);
  row.forgotten = 5;
  EXPECT_EQ(SampleOne(row).recent_ids.front(), 4);
  EXPECT_EQ(SampleOne(row).recent_ids.back(), 2);
  EXPECT_EQ(SampleOne(row).recent_ids.size(), row.recent_ids.size());
}

TEST(SamplingTest, AScoredRowTellsItsTargetAndLeavesItsSlotAlone) {
  RowToSample row = SmallRow();
  row.params.presence_penalty = 2;
  row.recent_ids = {3};
  row.target = 3;
  const SampledToken scored = SampleOne(row);
  EXPECT_EQ(scored.status, SampleStatus::kOk);
  EXPECT_EQ(scored.token, 3);
  EXPECT_EQ(scored.logprob, std::log(0.08f));
  EXPECT_EQ(scored.evaluated, 1u);
  EXPECT_EQ(scored.last_sampled, -1);
  EXPECT_THAT(scored.recent_ids, ElementsAre(3));
}

TEST(SamplingTest, TheBestWordsComeFromTheModelsOwnDistribution) {
  RowToSample row = SmallRow();
  row.params.logit_bias = {{1, 50.0}};
  row.top_count = 3;
  const SampledToken sampled = SampleOne(row);
  EXPECT_EQ(sampled.token, 1);
  ASSERT_EQ(sampled.top.size(), 3u);
  EXPECT_EQ(sampled.top[0].token_id, 2);
  EXPECT_EQ(sampled.top[1].token_id, 0);
  EXPECT_EQ(sampled.top[2].token_id, 1);  // 0.1, as word 4
  EXPECT_EQ(sampled.top[1].logprob, row.head[0]);
}

TEST(SamplingTest, TheBestWordsOfADrawInTheHeadAskForTheirClusters) {
  RowToSample row = SmallRow();
  row.params = Greedy();
  row.head = {std::log(0.5f), std::log(0.1f), std::log(0.3f), std::log(0.1f)};
  row.top_count = 2;
  const SampledToken sampled = SampleOne(row);
  EXPECT_EQ(sampled.token, 0);
  EXPECT_EQ(sampled.evaluated, 3u);
  ASSERT_EQ(sampled.top.size(), 2u);
  EXPECT_EQ(sampled.top[1].token_id, 2);
}

TEST(SamplingTest, RowsOfNoSlotAreLeftAlone) {
  RowToSample unused = SmallRow();
  unused.is_used = false;
  unused.head[0] = std::numeric_limits<float>::quiet_NaN();
  unused.top_count = 3;
  RowToSample used = SmallRow();
  used.params = Greedy();
  const std::vector<SampledToken> sampled =
      SampleOnDevice(SmallBins(), {unused, used, unused}, {});
  EXPECT_EQ(sampled[0].status, SampleStatus::kUnused);
  EXPECT_EQ(sampled[0].token, -1);
  EXPECT_TRUE(sampled[0].top.empty());
  EXPECT_EQ(sampled[1].token, 2);
  EXPECT_EQ(sampled[2].evaluated, 0u);
}

}  // namespace
}  // namespace txl::cuda
