#include "tests/model/cuda/kernels/sampling_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"

namespace txl::cuda {
namespace {

class Dice {
 public:
  explicit Dice(std::mt19937& random) : random_(random) {}
  bool OneIn(int n) { return Below(n) == 0; }
  int Below(int64_t n) {
    return std::uniform_int_distribution<int>(0,
                                              static_cast<int>(n) - 1)(random_);
  }
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

 private:
  std::mt19937& random_;
};

void SetFilters(Dice& dice, int vocab, SamplingParams& params) {
  const double temperatures[] = {1, 1, 0, 0.3, 0.8, 1.3, 2.5, 0.01};
  params.temperature = temperatures[dice.Below(8)];
  if (dice.OneIn(3)) params.top_k = 1 + dice.Below(dice.OneIn(2) ? 9 : vocab);
  if (dice.OneIn(3)) params.top_p = dice.Between(0.01, 1);
  if (dice.OneIn(4)) params.min_p = dice.OneIn(9) ? 1 : dice.Between(0, 0.3);
  if (dice.OneIn(5)) params.typical_p = dice.Between(0.01, 1);
}

void SetPenalties(Dice& dice, int vocab, RowToSample& row) {
  SamplingParams& params = row.params;
  if (dice.OneIn(2)) {
    params.repetition_penalty = dice.OneIn(9) ? 1e-308 : dice.Between(0.5, 2);
  }
  if (dice.OneIn(2)) params.presence_penalty = dice.Between(-2, 2);
  if (dice.OneIn(2)) params.frequency_penalty = dice.Between(-2, 2);
  if (dice.OneIn(2)) {
    for (int i = dice.Below(16); i >= 0; --i) {
      params.logit_bias[dice.Below(vocab)] =
          dice.OneIn(8) ? dice.Between(-100, 100) : dice.Between(-4, 4);
    }
  }
  params.penalty_window = dice.Below(33);
}

// Distinct, in any order.
void SetAllowed(Dice& dice, int vocab, SamplingParams& params) {
  std::set<int32_t> ids;
  const int count = 1 + dice.Below(dice.OneIn(2) ? 3 : 60);
  for (int i = 0; i < count; ++i) ids.insert(dice.Below(vocab));
  params.allowed_token_ids.assign(ids.rbegin(), ids.rend());
}

}  // namespace

std::vector<VocabularyBins> ManyBins() {
  return {{{50}},       {{1}},          {{300, 301}},
          {{20, 57}},   {{5, 12, 40}},  {{3, 4, 10, 60, 500}},
          {{700, 900}}, {{1, 2, 3, 4}}, {{1200}}};
}

RowToSample AnyRow(std::mt19937& random, const VocabularyBins& bins) {
  Dice dice(random);
  const int vocab = static_cast<int>(bins.ends.back());
  RowToSample row = RandomRow(random, bins, dice.Between(0.3, 4),
                              dice.OneIn(3) ? dice.Between(0.5, 4) : 0);
  if (dice.OneIn(6)) {
    for (int64_t i = 0; i < bins.ends[0]; ++i) {
      if (dice.OneIn(3)) {
        row.head[i] = -std::numeric_limits<float>::infinity();
      }
    }
  }
  SetFilters(dice, vocab, row.params);
  for (int i = dice.Below(40); i > 0; --i) {
    row.recent_ids.push_back(dice.Below(dice.OneIn(2) ? vocab : vocab / 8 + 1));
  }
  row.forgotten = dice.Below(100);
  if (dice.OneIn(3)) SetPenalties(dice, vocab, row);
  if (dice.OneIn(4)) SetAllowed(dice, vocab, row.params);
  row.params.follow_kinds = dice.OneIn(3);
  for (int i = dice.Below(9); i > 0; --i) {
    row.banned_ids.push_back(dice.Below(vocab + 2));
  }
  row.params.seed = random();
  row.position = dice.Below(1000);
  row.min_position = dice.OneIn(2) ? 0 : 500;
  if (dice.OneIn(9)) row.target = dice.Below(vocab);
  if (dice.OneIn(5)) row.top_count = 1 + dice.Below(kMaxTopLogprobs);
  for (int i = dice.OneIn(5) ? dice.Below(kMaxNamedIds + 1) : 0; i > 0; --i) {
    row.named.push_back(dice.Below(vocab));
  }
  row.is_used = !dice.OneIn(20);
  return row;
}

std::string Describe(const RowToSample& row) {
  const SamplingParams& p = row.params;
  return absl::StrCat(
      "temperature ", p.temperature, ", top_k ", p.top_k, ", top_p ", p.top_p,
      ", min_p ", p.min_p, ", typical_p ", p.typical_p, ", penalties ",
      p.repetition_penalty, " ", p.presence_penalty, " ", p.frequency_penalty,
      ", biases ", p.logit_bias.size(), ", allowed ",
      p.allowed_token_ids.size(), ", kinds ",
      p.follow_kinds && !row.recent_ids.empty() ? row.recent_ids.back() : -1,
      ", named ", row.named.size(), ", bans ",
      row.position < row.min_position ? row.banned_ids.size() : 0, ", target ",
      row.target, ", head ", row.head.size());
}

void ExpectAsOnHost(const VocabularyBins& bins,
                    const std::vector<RowToSample>& rows,
                    const StepOptions& options) {
  const std::vector<SampledToken> sampled = SampleOnDevice(bins, rows, options);
  for (size_t r = 0; r < rows.size(); ++r) {
    const SampledToken expected = SampleOnHost(bins, rows[r]);
    EXPECT_EQ(static_cast<int>(sampled[r].status),
              static_cast<int>(expected.status));
    EXPECT_EQ(sampled[r].token, expected.token) << Describe(rows[r]);
    EXPECT_EQ(sampled[r].logprob, expected.logprob);
    ASSERT_EQ(sampled[r].top.size(), expected.top.size());
    for (size_t i = 0; i < expected.top.size(); ++i) {
      EXPECT_EQ(sampled[r].top[i].token_id, expected.top[i].token_id);
      EXPECT_EQ(sampled[r].top[i].logprob, expected.top[i].logprob);
    }
  }
}

}  // namespace txl::cuda
