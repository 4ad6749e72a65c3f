#pragma once

// Parts of sample_rows.cu: the words that a row looks at, their
// log-probabilities and an order of them.

#include "model/cuda/device/warp.h"
#include "model/cuda/kernels/sampling.h"

namespace txl::cuda {

inline constexpr double kImpossible = -HUGE_VAL;
// Words that a lane loads before it uses the first.
inline constexpr int kWordsAhead = 4;

// Words of a bin that lie together; ids follow each other.
struct WordBin {
  float* words;
  int32_t first_id;
  int32_t size;
};

// Bins of a view: [begin, end).
struct BinRange {
  int begin;
  int end;
};

// While the row's parameters change a word, the word holds a signalling NaN
// that names its AdjustedWord. Arithmetic never produces a signalling NaN.
TXL_DEVICE float BoxOf(int entry) {
  return BitsToFloat(0x7f800001u + static_cast<uint32_t>(entry));
}
// The entry, or -1 for a number.
TXL_DEVICE int EntryIn(float word) {
  const uint32_t entry = FloatToBits(word) - 0x7f800001u;
  return entry < 0x3fffffu ? static_cast<int>(entry) : -1;
}

// Bins in ascending order of ids; the first is the head's.
struct RowWords {
  const WordBin* bins;  // in shared memory
  const AdjustedWord* adjusted;
  // Words without an AdjustedWord are impossible.
  bool only_adjusted = false;
  // Kind of each id; words of other kinds than `next_kinds` are impossible.
  // Null: no word is for its kind.
  const uint8_t* kinds = nullptr;
  uint64_t next_kinds = 0;

  TXL_DEVICE double Logprob(int32_t id, float word) const {
    const int entry = EntryIn(word);
    const double logprob =
        entry >= 0 ? adjusted[entry].logprob : static_cast<double>(word);
    const bool is_out = (only_adjusted && entry < 0) ||
                        (kinds != nullptr && !HoldsKind(next_kinds, kinds[id]));
    // A sum, so that NaN and +inf show.
    return is_out ? logprob + kImpossible : logprob;
  }
};

// use(id, log-probability) for every word, by some thread of the block: each
// thread's come in ascending order, and always the same.
template <typename Use>
TXL_DEVICE void ForWords(const RowWords& words, BinRange range,
                         const Use& use) {
  TXL_NO_UNROLL
  for (int b = range.begin; b < range.end; ++b) {
    const WordBin bin = words.bins[b];
    TXL_NO_UNROLL
    for (int i = Thread(); i < bin.size; i += kWordsAhead * Threads()) {
      float loaded[kWordsAhead];
      TXL_UNROLL
      for (int u = 0; u < kWordsAhead; ++u) {
        const int at = i + u * Threads();
        loaded[u] = at < bin.size ? bin.words[at] : 0;
      }
      // Not unrolled: `use` is long. The next word is always loaded[0].
      TXL_NO_UNROLL
      for (int at = i; at < bin.size && at < i + kWordsAhead * Threads();
           at += Threads()) {
        use(bin.first_id + at, words.Logprob(bin.first_id + at, loaded[0]));
        TXL_UNROLL
        for (int u = 1; u < kWordsAhead; ++u) loaded[u - 1] = loaded[u];
      }
    }
  }
}

// Where a word of the view lies; null: not in it.
TXL_DEVICE float* FindWord(const RowWords& words, BinRange range, int32_t id) {
  for (int b = range.begin; b < range.end; ++b) {
    const WordBin bin = words.bins[b];
    if (id >= bin.first_id && id - bin.first_id < bin.size) {
      return bin.words + (id - bin.first_id);
    }
  }
  return nullptr;
}

TXL_DEVICE bool IsLogprob(double x) { return x < HUGE_VAL; }  // NaN is not

struct BestWord {
  double logprob = kImpossible;
  int32_t id = -1;
  int32_t bad = 0;  // a word is NaN or +inf

  TXL_DEVICE void Take(int32_t other_id, double other) {
    if (!IsLogprob(other)) {
      bad = 1;
    } else if (other > logprob || (other == logprob && other_id < id)) {
      logprob = other;
      id = other_id;
    }
  }
};

// The most probable word, of equal ones the one of the lowest id; id -1 where
// every word is impossible.
TXL_DEVICE BestWord FindBest(const RowWords& words, BinRange range,
                             BlockScratch& scratch) {
  BestWord best;
  ForWords(words, range,
           [&](int32_t id, double logprob) { best.Take(id, logprob); });
  return BlockReduce(
      best,
      [](BestWord a, const BestWord& b) {
        const int32_t bad = a.bad | b.bad;
        if (b.id >= 0) a.Take(b.id, b.logprob);
        a.bad = bad;
        return a;
      },
      scratch);
}

// Doubles as integers in the same order.
TXL_DEVICE uint64_t Ascending(double x) {
  x += 0.0;  // one zero only
  uint64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  const uint64_t sign = uint64_t{1} << 63;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}
TXL_DEVICE double FromAscending(uint64_t key) {
  const uint64_t sign = uint64_t{1} << 63;
  const uint64_t bits = (key & sign) != 0 ? key & ~sign : ~key;
  double x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// A place in an order of words: by ascending key, equal ones by id.
struct Rank {
  uint64_t key = ~uint64_t{0};
  int32_t id = 0x7fffffff;

  TXL_DEVICE bool IsBefore(const Rank& other) const {
    return key != other.key ? key < other.key : id < other.id;
  }
};
// Best first.
TXL_DEVICE Rank RankOf(int32_t id, double logprob) {
  return {~Ascending(logprob), id};
}
TXL_DEVICE double LogprobOf(const Rank& rank) {
  return FromAscending(~rank.key);
}

}  // namespace txl::cuda
