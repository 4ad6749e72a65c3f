#pragma once

// Parts of sample_rows.cu: which words the filters of
// model/sampling/candidate_filter.h keep, and with what weight. Each filter's
// border is found by sampling_border.h; words are never sorted.

#include "model/cuda/kernels/sampling_words.h"

namespace txl::cuda {

// The filters found so far.
struct Filter {
  double best = 0;  // largest log-probability
  double inverse_temperature = 1;
  Rank last;              // top_k, top_p: the last kept, best first
  double min_weight = 0;  // min_p
  bool is_typical = false;
  double entropy = 0;
  double log_total = 0;
  Rank last_typical;

  // exp((logprob - best) / temperature). A product with the reciprocal: a draw
  // cannot tell, and at temperature 1 it is the same.
  TXL_DEVICE double Scaled(double logprob) const {
    return RoundedProduct(logprob - best, inverse_temperature);
  }
  TXL_DEVICE double Distance(double logprob) const {
    return fabs(entropy + (Scaled(logprob) - log_total));
  }
  TXL_DEVICE Rank TypicalRank(int32_t id, double logprob) const {
    return {Ascending(Distance(logprob)), id};
  }
  // 0 for words that are not kept.
  TXL_DEVICE double Weight(int32_t id, double logprob) const {
    if (logprob == kImpossible) return 0;
    if (last.IsBefore(RankOf(id, logprob))) return 0;
    const double weight = exp(Scaled(logprob));
    if (weight < min_weight) return 0;
    if (is_typical && last_typical.IsBefore(TypicalRank(id, logprob))) return 0;
    return weight;
  }
};

// The reciprocal of a temperature > 0, finite also for the smallest.
TXL_DEVICE double InverseOf(double temperature) {
  const double inverse = 1 / temperature;
  return inverse < 1.7976931348623157e308 ? inverse : 1.7976931348623157e308;
}

// What a run of words is counted by, and in which order.
enum class RunKind { kCount, kWeight, kTypicalWeight };

struct RankedWord {
  Rank rank;
  double measure = 0;  // 0: not a candidate
};

// Words with keys in [first, last].
struct KeyRange {
  uint64_t first = 0;
  uint64_t last = ~uint64_t{0};
  double before = 0;   // sum of the measures of smaller keys
  double measure = 0;  // sum of the words' measures
  int32_t count = 0;
};

struct Ranking {
  RunKind kind = RunKind::kCount;
  bool counts_impossible = false;  // kCount: also words of probability 0
  Filter filter;

  TXL_DEVICE RankedWord Look(const KeyRange& keys, int32_t id,
                             double logprob) const {
    RankedWord word;
    word.rank = kind == RunKind::kTypicalWeight
                    ? filter.TypicalRank(id, logprob)
                    : RankOf(id, logprob);
    if (word.rank.key < keys.first || word.rank.key > keys.last) return word;
    if (kind == RunKind::kCount) {
      const bool counts =
          counts_impossible ? logprob == logprob : logprob > kImpossible;
      word.measure = counts ? 1 : 0;
    } else {
      word.measure = filter.Weight(id, logprob);
    }
    return word;
  }
};

}  // namespace txl::cuda
