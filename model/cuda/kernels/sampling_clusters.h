#pragma once

// Parts of sample_rows.cu: the cluster-first draw of
// model/sampling/cluster_draw.h in the same steps, interrupted where a
// cluster's words are not there yet. Entries are kept as T log(weight), as
// there.

#include "model/cuda/kernels/sampling_row.h"

namespace txl::cuda {

// Bounds of the clusters' weights, at round 0.
TXL_DEVICE void StartClusterDraw(SamplingBlockRow& row,
                                 const Adjustments& lists) {
  const double temperature = row.slot->temperature;
  for (int c = Thread(); c < row.args.clusters; c += Threads()) {
    const double spread =
        temperature > 1 ? (temperature - 1) * log(double(row.SizeOf(c))) : 0;
    row.scratch.mass[c] = row.MassOf(c) + spread;
  }
  row.exact = temperature == 1 ? row.all_clusters() : 0;
  for (int b = 0; b < lists.banned_count; ++b) {
    for (int c = 0; c < row.args.clusters; ++c) {
      const bool has_ban = lists.banned[b] >= row.args.ends[c] &&
                           lists.banned[b] < row.args.ends[c + 1];
      if (has_ban) row.exact &= ~(uint32_t{1} << c);
    }
  }
  BlockBarrier();
}

// Draws a word of the head (token) or a cluster (drawn).
TXL_DEVICE void DrawEntry(SamplingBlockRow& row, const BestWord& best) {
  const int clusters = row.args.clusters;
  const double* mass = row.scratch.mass;
  Filter filter;
  filter.inverse_temperature = InverseOf(row.slot->temperature);
  filter.best = best.id < 0 ? kImpossible : best.logprob;
  for (int c = 0; c < clusters; ++c) {
    filter.best = mass[c] > filter.best ? mass[c] : filter.best;
  }
  if (filter.best == kImpossible) {
    row.status = SampleStatus::kNothingLeft;
    return;
  }
  const auto weigh = [&](int32_t id, double logprob) {
    return filter.Weight(id, logprob);
  };
  double* tiles = row.scratch.border.tiles;
  const double words = SumTiles(row.words, {0, 1}, weigh, tiles);
  double total = words;
  for (int c = 0; c < clusters; ++c) total += weigh(c, mass[c]);
  const double target = row.NextUniform() * total;
  double running = words;
  for (int c = 0; c < clusters && running <= target; ++c) {
    const double weight = weigh(c, mass[c]);
    if (weight <= 0) continue;
    row.drawn = c;
    running += weight;
  }
  if (row.drawn >= 0) return;
  row.token =
      Draw(row.words, {0, 1}, weigh, tiles, target, row.scratch.border.draw);
}

// The drawn cluster's words are in the view: accepts it and draws one of them
// (token), or refuses it (drawn = -1) and knows its weight from then on.
TXL_DEVICE void DecideCluster(SamplingBlockRow& row) {
  const int c = row.drawn;
  const BinRange bin = BinOfCluster(row.known, c);
  const BestWord best = FindBest(row.words, bin, row.scratch.border.block);
  if (best.bad != 0) {
    row.status = SampleStatus::kNotFinite;
    return;
  }
  Filter filter;
  filter.inverse_temperature = InverseOf(row.slot->temperature);
  filter.best = best.logprob;
  const auto weigh = [&](int32_t id, double logprob) {
    return filter.Weight(id, logprob);
  };
  double* tiles = row.scratch.border.tiles;
  const double sum = SumTiles(row.words, bin, weigh, tiles);
  row.drawn = -1;
  if ((row.exact >> c & 1) == 0) {
    const double exact = best.id < 0
                             ? kImpossible
                             : best.logprob + row.slot->temperature * log(sum);
    const double acceptance =
        exp((exact - row.scratch.mass[c]) * filter.inverse_temperature);
    row.exact |= uint32_t{1} << c;
    BlockBarrier();
    if (Thread() == 0) row.scratch.mass[c] = exact;
    BlockBarrier();
    if (row.NextUniform() >= acceptance) return;
  }
  if (best.id < 0) {
    row.status = SampleStatus::kNothingLeft;
    return;
  }
  row.token = Draw(row.words, bin, weigh, tiles, row.NextUniform() * sum,
                   row.scratch.border.draw);
}

// What the row asks for when the drawn cluster is not there. A cluster whose
// weight is exact is not refused; where one may be and no round is left after
// the next, everything that could be drawn then.
TXL_DEVICE uint32_t NeedOfDraw(const SamplingBlockRow& row) {
  const uint32_t drawn = uint32_t{1} << row.drawn;
  if ((row.exact & drawn) != 0 || row.args.round + 1 < row.args.rounds) {
    return drawn;
  }
  uint32_t need = 0;
  for (int c = 0; c < row.args.clusters; ++c) {
    if (row.scratch.mass[c] > kImpossible) need |= uint32_t{1} << c;
  }
  return need & ~row.known;
}

// Goes on until the token is decided or a cluster is needed. `best`: of the
// head's words.
TXL_DEVICE void DrawByCluster(SamplingBlockRow& row, const BestWord& best) {
  TXL_NO_UNROLL
  while (row.status == SampleStatus::kOpen && row.token < 0) {
    if (row.drawn < 0) DrawEntry(row, best);
    if (row.drawn < 0) continue;
    if ((row.known >> row.drawn & 1) == 0) {
      row.need = NeedOfDraw(row);
      return;
    }
    DecideCluster(row);
  }
}

}  // namespace txl::cuda
