#pragma once

// Parts of sample_rows.cu: a row's numbers, and what is drawn from its joint
// distribution. One block per row; all of its threads hold the same numbers and
// take the same way.

#include "model/cuda/kernels/sampling_adjust.h"
#include "model/cuda/kernels/sampling_border.h"
#include "model/sampling/draw.h"

namespace txl::cuda {

struct RowScratch {
  BorderScratch border;
  WordBin bins[kMaxSampledClusters + 1];
  double mass[kMaxSampledClusters];  // SamplingRowState's
  double temperature;                // of a joint draw
  int32_t found;                     // of the best words
  int32_t is_last_block;
};

// The row that a block samples, and what it knows of it.
struct SamplingBlockRow {
  const SamplingArgs& args;
  int row;
  RowScratch& scratch;
  const SamplingSlot* slot;
  // The view.
  RowWords words;
  int bins = 0;
  // SamplingRowState's.
  SampleStatus status = SampleStatus::kOpen;
  int32_t token = -1;
  uint32_t known = 0, need = 0, wanted = 0;
  int32_t drawn = -1;
  uint32_t draws = 0, exact = 0;

  TXL_DEVICE BinRange all() const { return {0, bins}; }
  TXL_DEVICE float* head() const { return args.head + row * args.head_stride; }
  // log P of a cluster.
  TXL_DEVICE double MassOf(int c) const { return head()[args.ends[0] + c]; }
  TXL_DEVICE int32_t SizeOf(int c) const {
    return args.ends[c + 1] - args.ends[c];
  }
  TXL_DEVICE uint32_t all_clusters() const {
    return (uint32_t{1} << args.clusters) - 1;
  }
  TXL_DEVICE int32_t target() const {
    return args.targets == nullptr ? -1 : args.targets[row];
  }
  TXL_DEVICE double NextUniform() {
    return UniformDraw(slot->seed, args.rows.position[row] + 1, draws++);
  }
};

// This block's row, with nothing known and nothing open.
TXL_DEVICE SamplingBlockRow ThisRow(const SamplingArgs& args,
                                    RowScratch& scratch) {
  const int32_t index = args.rows.slot[BlockX()];
  if (Thread() == 0) {
    scratch.border.tiles = reinterpret_cast<double*>(&scratch + 1);
  }
  return {args,
          BlockX(),
          scratch,
          index < 0 ? nullptr : args.slots.slot(index),
          {scratch.bins, nullptr}};
}

// What the kind of the slot's last id says of a row that samples; before Open.
TXL_DEVICE void FollowKinds(SamplingBlockRow& row) {
  const SamplingSlot& slot = *row.slot;
  double temperature = slot.temperature;
  if (slot.follows_kinds != 0 && slot.recent_count > 0) {
    const SamplingSlots& slots = row.args.slots;
    const int64_t last = (slot.recent_count - 1) % slots.limits.recent;
    const int32_t id = slots.recent(row.args.rows.slot[row.row])[last];
    const KindRule& rule = row.args.rules[row.args.kinds[id]];
    temperature *= rule.next_temperature;
    row.words.kinds = rule.restricts != 0 ? row.args.kinds : nullptr;
    row.words.next_kinds = rule.next;
  }
  if (Thread() == 0) row.scratch.temperature = temperature;
}

// A block per row; shared memory for a RowScratch and the tiles behind it.
inline LaunchShape SamplingShape(const SamplingArgs& args) {
  int tiles = TilesOf(args.ends[0]);
  for (int c = 0; c < args.clusters; ++c) {
    tiles += TilesOf(args.ends[c + 1] - args.ends[c]);
  }
  return {{args.rows.count},
          args.threads,
          sizeof(RowScratch) + static_cast<size_t>(tiles) * sizeof(double)};
}

// Opens a view on the head's words and these clusters'; once in a launch.
TXL_DEVICE void Open(SamplingBlockRow& row, uint32_t clusters) {
  const SamplingArgs& args = row.args;
  row.bins = 1;
  if (Thread() == 0) row.scratch.bins[0] = {row.head(), 0, args.ends[0]};
  for (int c = 0; c < args.clusters; ++c) {
    if ((clusters >> c & 1) == 0) continue;
    if (Thread() == 0) {
      const int32_t place = args.lists.place[c * args.rows.count + row.row];
      row.scratch.bins[row.bins] = {
          args.words[c].logprobs + place * args.words[c].stride, args.ends[c],
          row.SizeOf(c)};
    }
    ++row.bins;
  }
  BlockBarrier();
}

// Bin of a cluster in a view of these clusters.
TXL_DEVICE BinRange BinOfCluster(uint32_t clusters, int c) {
  int bin = 1;
  for (int before = 0; before < c; ++before) bin += clusters >> before & 1;
  return {bin, bin + 1};
}

// Clusters that can hold a word of at least this log-probability.
TXL_DEVICE uint32_t ClustersFrom(const SamplingBlockRow& row, double bound) {
  uint32_t clusters = 0;
  for (int c = 0; c < row.args.clusters; ++c) {
    if (!(row.MassOf(c) + kMassGuard < bound)) clusters |= uint32_t{1} << c;
  }
  return clusters;
}

// The last word that top_k keeps of the head's tells which clusters count.
TXL_DEVICE bool IsBoundedByTopK(const SamplingBlockRow& row) {
  return row.target() < 0 && row.slot->path == SamplingPath::kDrawBounded &&
         row.slot->top_k > 0;
}

// Clusters that hold one of these ids.
TXL_DEVICE uint32_t ClustersOf(const SamplingBlockRow& row, const int32_t* ids,
                               int32_t count) {
  uint32_t clusters = 0;
  for (int32_t i = 0; i < count; ++i) {
    for (int c = 0; c < row.args.clusters; ++c) {
      const bool holds =
          ids[i] >= row.args.ends[c] && ids[i] < row.args.ends[c + 1];
      if (holds) clusters |= uint32_t{1} << c;
    }
  }
  return clusters;
}

// Clusters that the token depends on, as the head alone tells; not of rows
// bounded by top_k, nor in the cluster-first draw.
TXL_DEVICE uint32_t WantedClusters(const SamplingBlockRow& row,
                                   const BestWord& best,
                                   const Adjustments& lists) {
  if (row.target() >= 0) {
    const int32_t target = row.target();
    return ClustersOf(row, &target, 1);
  }
  if (lists.allowed_count > 0) {
    return ClustersOf(row, lists.allowed, lists.allowed_count);
  }
  const SamplingSlot& slot = *row.slot;
  if (slot.path == SamplingPath::kBest) return ClustersFrom(row, best.logprob);
  if (slot.path != SamplingPath::kDrawBounded) return row.all_clusters();
  return ClustersFrom(row, best.logprob + slot.temperature * log(slot.min_p));
}

struct WeightSums {
  double weight = 0;
  double scaled = 0;  // of weight times log-probability / temperature
};

// The entropy H = -sum p log p of the words' weights w = p W, and log W:
// H = log W - sum w log w / W.
TXL_DEVICE void SetEntropy(const SamplingBlockRow& row, Filter& filter) {
  WeightSums sums;
  ForWords(row.words, row.all(), [&](int32_t id, double logprob) {
    const double weight = filter.Weight(id, logprob);
    if (weight <= 0) return;
    sums.weight += weight;
    sums.scaled += weight * filter.Scaled(logprob);
  });
  sums = BlockReduce(
      sums,
      [](const WeightSums& a, const WeightSums& b) {
        return WeightSums{a.weight + b.weight, a.scaled + b.scaled};
      },
      row.scratch.border.block);
  filter.log_total = log(sums.weight);
  filter.entropy = filter.log_total - sums.scaled / sums.weight;
}

// Finds the filters in their order: top_k, top_p, min_p, typical_p. False: at
// round 0, top_k needs clusters first.
TXL_DEVICE bool FindFilter(SamplingBlockRow& row, const BestWord& best,
                           Filter& found) {
  const SamplingSlot& slot = *row.slot;
  Ranking ranking;
  Filter& filter = ranking.filter;
  filter.best = best.logprob;
  filter.inverse_temperature = InverseOf(row.scratch.temperature);
  TXL_NO_UNROLL
  for (int stage = 0; stage < 3; ++stage) {
    ranking.kind = static_cast<RunKind>(stage);
    if (stage == 2) filter.min_weight = slot.min_p;
    const double share = stage == 0   ? static_cast<double>(slot.top_k)
                         : stage == 1 ? slot.top_p
                                      : slot.typical_p;
    if (stage == 0 ? share > 0 : share < 1) {
      if (stage == 2) SetEntropy(row, filter);
      const KeyRange keys =
          AllKeys(row.words, row.all(), ranking, row.scratch.border);
      if (stage > 0 || keys.count >= share) {
        const Rank last = FindBorder(row.words, row.all(), ranking, keys,
                                     stage == 0 ? share : share * keys.measure,
                                     row.scratch.border);
        if (stage < 2) filter.last = last;
        if (stage == 2) filter.last_typical = last;
        filter.is_typical = stage == 2;
      }
    }
    if (stage == 0 && row.args.round == 0 && IsBoundedByTopK(row)) {
      const bool is_limit = filter.last.key == Rank().key;  // fewer words
      row.wanted =
          ClustersFrom(row, is_limit ? kImpossible : LogprobOf(filter.last));
      if ((row.wanted & ~row.known) != 0) return false;
    }
  }
  found = filter;
  return true;
}

// A draw among the words of the view that the filters keep; -1 when clusters
// are needed first.
TXL_DEVICE int32_t DrawJointly(SamplingBlockRow& row, const BestWord& best) {
  Filter filter;
  if (!FindFilter(row, best, filter)) return -1;
  const auto weigh = [&](int32_t id, double logprob) {
    return filter.Weight(id, logprob);
  };
  BorderScratch& scratch = row.scratch.border;
  const double total = SumTiles(row.words, row.all(), weigh, scratch.tiles);
  return Draw(row.words, row.all(), weigh, scratch.tiles,
              row.NextUniform() * total, scratch.draw);
}

}  // namespace txl::cuda
