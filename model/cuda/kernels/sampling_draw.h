#pragma once

// Parts of sample_rows.cu: a draw from words by weight, in order of id.

#include "model/cuda/kernels/sampling_words.h"

namespace txl::cuda {

// Consecutive words whose weights are summed by one warp. Sums of tiles are
// kept, so that a draw looks at the words of one tile again only.
inline constexpr int kTileWordsPerLane = 8;
inline constexpr int kTileWords = kTileWordsPerLane * kWarp;

TXL_ANYWHERE int TilesOf(int words) {
  return (words + kTileWords - 1) / kTileWords;
}

struct DrawScratch {
  int32_t drawn;
};

// Which part of a sum a target falls into.
struct Crossing {
  int lane = -1;      // -1: no lane has a sum above 0
  double before = 0;  // sum of the lanes before
};

// The first lane at which the running sum of `mine`, from `start`, exceeds the
// target; where rounding keeps it from doing so, the last one that adds to it.
TXL_DEVICE Crossing FindCrossing(double mine, double start, double target) {
  const double running = WarpRunningSum(mine);
  const bool adds = mine > 0;
  const int crosses = adds && start + running > target ? Lane() : kWarp;
  const int first =
      WarpReduce(crosses, [](int a, int b) { return a < b ? a : b; });
  const int last = WarpReduce(adds ? Lane() : -1,
                              [](int a, int b) { return a < b ? b : a; });
  Crossing crossing;
  crossing.lane = first < kWarp ? first : last;
  const double before =
      ShuffleFrom(running, crossing.lane > 0 ? crossing.lane - 1 : 0);
  crossing.before = start + (crossing.lane > 0 ? before : 0);
  return crossing;
}

// Sums weigh(id, log-probability) over every tile into `tiles` and returns the
// sum of those: lanes have consecutive tiles, and their sums are added in the
// order of FindCrossing. Weights are >= 0 and finite.
template <typename Weigh>
TXL_DEVICE double SumTiles(const RowWords& words, BinRange range,
                           const Weigh& weigh, double* tiles) {
  const int warps = Threads() / kWarp;
  int first_tile = 0;
  BlockBarrier();
  for (int b = range.begin; b < range.end; ++b) {
    const WordBin bin = words.bins[b];
    const int count = TilesOf(bin.size);
    const int shift = first_tile % warps;
    for (int tile = (WarpOfBlock() + warps - shift) % warps; tile < count;
         tile += warps) {
      double sum = 0;
      float loaded[kTileWordsPerLane];
      TXL_UNROLL
      for (int j = 0; j < kTileWordsPerLane; ++j) {
        const int i = tile * kTileWords + j * kWarp + Lane();
        loaded[j] = i < bin.size ? bin.words[i] : 0;
      }
      // This loop is not unrolled, for the reason that ForWords has.
      TXL_NO_UNROLL
      for (int j = 0; j < kTileWordsPerLane; ++j) {
        const int i = tile * kTileWords + j * kWarp + Lane();
        if (i < bin.size) {
          const int32_t id = bin.first_id + i;
          sum += weigh(id, words.Logprob(id, loaded[0]));
        }
        TXL_UNROLL
        for (int u = 1; u < kTileWordsPerLane; ++u) loaded[u - 1] = loaded[u];
      }
      sum = WarpReduce(sum, Plus());
      if (Lane() == 0) tiles[first_tile + tile] = sum;
    }
    first_tile += count;
  }
  BlockBarrier();
  const int per_lane = (first_tile + kWarp - 1) / kWarp;
  double mine = 0;
  for (int t = Lane() * per_lane; t < (Lane() + 1) * per_lane; ++t) {
    if (t < first_tile) mine += tiles[t];
  }
  return ShuffleFrom(WarpRunningSum(mine), kWarp - 1);
}

// The tile that a target falls into, and the sum before it; -1: no weight.
struct DrawnTile {
  int tile = -1;
  double before = 0;
};
TXL_DEVICE DrawnTile FindTile(const double* tiles, int count, double target) {
  const int per_lane = (count + kWarp - 1) / kWarp;
  const int begin = Lane() * per_lane;
  double mine = 0;
  for (int t = begin; t < begin + per_lane; ++t) {
    if (t < count) mine += tiles[t];
  }
  const Crossing crossing = FindCrossing(mine, 0, target);
  DrawnTile drawn;
  double running = crossing.before;
  for (int j = 0; j < per_lane; ++j) {
    const int t = crossing.lane * per_lane + j;
    if (crossing.lane < 0 || t >= count || tiles[t] <= 0) continue;
    drawn.tile = t;
    drawn.before = running;
    running += tiles[t];
    if (running > target) break;
  }
  return drawn;
}

// In a tile of the warp's, `tile` words from the bin's begin: the first word at
// which the running sum from `before` exceeds the target, as above; -1: no
// weight.
template <typename Weigh>
TXL_DEVICE int32_t FindInTile(const RowWords& words, const WordBin& bin,
                              int tile, const Weigh& weigh, double before,
                              double target) {
  const int begin = tile * kTileWords + Lane() * kTileWordsPerLane;
  const auto weight_of = [&](int i) {
    if (i >= bin.size) return 0.0;
    const int32_t id = bin.first_id + i;
    return weigh(id, words.Logprob(id, bin.words[i]));
  };
  double mine = 0;
  TXL_NO_UNROLL
  for (int j = 0; j < kTileWordsPerLane; ++j) mine += weight_of(begin + j);
  const Crossing crossing = FindCrossing(mine, before, target);
  int found = -1;
  double running = crossing.before;
  TXL_NO_UNROLL
  for (int j = 0; j < kTileWordsPerLane && Lane() == crossing.lane; ++j) {
    const double weight = weight_of(begin + j);
    if (weight <= 0) continue;
    found = begin + j;
    running += weight;
    if (running > target) break;
  }
  found = ShuffleFrom(found, crossing.lane < 0 ? 0 : crossing.lane);
  return found < 0 ? -1 : bin.first_id + found;
}

// After SumTiles of the same: the first id, in order, at which the running sum
// of weights exceeds the target; where rounding keeps it from doing so, the
// last one that has a weight above 0. -1: none has.
template <typename Weigh>
TXL_DEVICE int32_t Draw(const RowWords& words, BinRange range,
                        const Weigh& weigh, const double* tiles, double target,
                        DrawScratch& scratch) {
  if (WarpOfBlock() == 0) {
    int count = 0;
    for (int b = range.begin; b < range.end; ++b) {
      count += TilesOf(words.bins[b].size);
    }
    const DrawnTile drawn = FindTile(tiles, count, target);
    int32_t id = -1;
    int tile = drawn.tile;
    for (int b = range.begin; b < range.end && tile >= 0; ++b) {
      const WordBin bin = words.bins[b];
      if (tile < TilesOf(bin.size)) {
        id = FindInTile(words, bin, tile, weigh, drawn.before, target);
      }
      tile -= TilesOf(bin.size);
    }
    if (Lane() == 0) scratch.drawn = id;
  }
  BlockBarrier();
  return scratch.drawn;
}

}  // namespace txl::cuda
