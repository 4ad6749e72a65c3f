#pragma once

// Parts of sample_rows.cu: the last word of the shortest run, first ranks
// first, whose measures (counts or weights) sum to at least a target. The range
// of keys that the border lies in is cut into parts again and again, until few
// words are left in it; those are compared with each other. Nothing is sorted,
// and no memory beyond the list of those few is needed.

#include "model/cuda/kernels/sampling_draw.h"
#include "model/cuda/kernels/sampling_filter.h"

namespace txl::cuda {

inline constexpr int kKeyParts = 8;
inline constexpr int kListedWords = 256;

struct PartSums {
  double measure[kKeyParts];
};
struct PartCounts {
  int32_t count[kKeyParts];
};

struct BorderScratch {
  BlockScratch block;
  DrawScratch draw;
  RankedWord list[kListedWords];
  double* tiles;  // one for every tile of the view
};

// All candidates.
TXL_DEVICE KeyRange AllKeys(const RowWords& words, BinRange range,
                            const Ranking& ranking, BorderScratch& scratch) {
  KeyRange all = {~uint64_t{0}, 0};
  ForWords(words, range, [&](int32_t id, double logprob) {
    const RankedWord word = ranking.Look(KeyRange(), id, logprob);
    if (word.measure <= 0) return;
    all.first = word.rank.key < all.first ? word.rank.key : all.first;
    all.last = word.rank.key > all.last ? word.rank.key : all.last;
    all.measure += word.measure;
    ++all.count;
  });
  return BlockReduce(
      all,
      [](KeyRange a, const KeyRange& b) {
        a.first = b.first < a.first ? b.first : a.first;
        a.last = b.last > a.last ? b.last : a.last;
        a.measure += b.measure;
        a.count += b.count;
        return a;
      },
      scratch.block);
}

// Parts have 2 to the power of this keys; there are at most kKeyParts.
TXL_DEVICE int PartShift(const KeyRange& keys) {
  const uint64_t span = keys.last - keys.first;
  int shift = 0;
  for (int step = 32; step > 0; step /= 2) {
    if (((span >> shift) >> step) >= kKeyParts / 2) shift += step;
  }
  return shift;
}

// The part of `keys` in which the sum reaches the target; where rounding keeps
// it from doing so, the last one with words.
TXL_DEVICE KeyRange Narrowed(const RowWords& words, BinRange range,
                             const Ranking& ranking, const KeyRange& keys,
                             double target, BorderScratch& scratch) {
  const int shift = PartShift(keys);
  PartSums sums = {};
  PartCounts counts = {};
  ForWords(words, range, [&](int32_t id, double logprob) {
    const RankedWord word = ranking.Look(keys, id, logprob);
    if (word.measure <= 0) return;
    const int part = static_cast<int>((word.rank.key - keys.first) >> shift);
    TXL_UNROLL
    for (int p = 0; p < kKeyParts; ++p) {
      sums.measure[p] += part == p ? word.measure : 0;
      counts.count[p] += part == p ? 1 : 0;
    }
  });
  sums = BlockReduce(
      sums,
      [](PartSums a, const PartSums& b) {
        TXL_UNROLL
        for (int p = 0; p < kKeyParts; ++p) a.measure[p] += b.measure[p];
        return a;
      },
      scratch.block);
  counts = BlockReduce(
      counts,
      [](PartCounts a, const PartCounts& b) {
        TXL_UNROLL
        for (int p = 0; p < kKeyParts; ++p) a.count[p] += b.count[p];
        return a;
      },
      scratch.block);
  KeyRange part;
  double before = keys.before;
  bool reached = false;
  TXL_UNROLL
  for (int p = 0; p < kKeyParts; ++p) {
    if (reached || counts.count[p] == 0) continue;
    part.first = keys.first + (static_cast<uint64_t>(p) << shift);
    const uint64_t width = uint64_t{1} << shift;
    part.last =
        keys.last - part.first < width ? keys.last : part.first + (width - 1);
    part.before = before;
    part.measure = sums.measure[p];
    part.count = counts.count[p];
    before += sums.measure[p];
    reached = before >= target;
  }
  return part;
}

// keys.count <= kListedWords.
TXL_DEVICE Rank BorderInList(const RowWords& words, BinRange range,
                             const Ranking& ranking, const KeyRange& keys,
                             double target, BorderScratch& scratch) {
  int mine = 0;
  ForWords(words, range, [&](int32_t id, double logprob) {
    if (ranking.Look(keys, id, logprob).measure > 0) ++mine;
  });
  int place = BlockRunningSum(mine, scratch.block).before;
  ForWords(words, range, [&](int32_t id, double logprob) {
    const RankedWord word = ranking.Look(keys, id, logprob);
    if (word.measure > 0) scratch.list[place++] = word;
  });
  BlockBarrier();
  Rank border;  // behind everything: no word reaches the target
  Rank last = {0, -1};
  for (int i = Thread(); i < keys.count; i += Threads()) {
    const Rank rank = scratch.list[i].rank;
    double running = 0;
    for (int j = 0; j < keys.count; ++j) {
      const RankedWord other = scratch.list[j];
      running += rank.IsBefore(other.rank) ? 0 : other.measure;
    }
    if (keys.before + running >= target && rank.IsBefore(border)) border = rank;
    if (last.IsBefore(rank)) last = rank;
  }
  border = BlockReduce(
      border,
      [](const Rank& a, const Rank& b) { return b.IsBefore(a) ? b : a; },
      scratch.block);
  last = BlockReduce(
      last, [](const Rank& a, const Rank& b) { return a.IsBefore(b) ? b : a; },
      scratch.block);
  return last.IsBefore(border) ? last : border;
}

// More words than fit the list have one key: they count in order of id.
TXL_DEVICE Rank BorderAmongEqual(const RowWords& words, BinRange range,
                                 const Ranking& ranking, const KeyRange& keys,
                                 double target, BorderScratch& scratch) {
  const auto measure = [&](int32_t id, double logprob) {
    return ranking.Look(keys, id, logprob).measure;
  };
  SumTiles(words, range, measure, scratch.tiles);
  // To reach x is to exceed what is a little smaller.
  const double rest = (target - keys.before) * (1 - 0x1p-52);
  return {keys.first,
          Draw(words, range, measure, scratch.tiles, rest, scratch.draw)};
}

// `keys`: AllKeys, with candidates. Where their measures do not sum to the
// target, the last candidate.
TXL_DEVICE Rank FindBorder(const RowWords& words, BinRange range,
                           const Ranking& ranking, KeyRange keys, double target,
                           BorderScratch& scratch) {
  while (keys.count > kListedWords && keys.first < keys.last) {
    keys = Narrowed(words, range, ranking, keys, target, scratch);
  }
  return keys.count > kListedWords
             ? BorderAmongEqual(words, range, ranking, keys, target, scratch)
             : BorderInList(words, range, ranking, keys, target, scratch);
}

}  // namespace txl::cuda
