#pragma once

// What usually follows a few ids: a table of n-grams that belongs to a model's
// vocabulary and lies in its directory as ngrams.bin (`txl-model ngrams`). A
// server guesses tokens from it; what is wrong in it costs time, never a
// result.
//
// The file, numbers little-endian: 8 bytes "TXLNGRM1"; u32 order, the most ids
// that it looks at; u32 fingerprint of the vocabulary; u64 number of entries, a
// power of 2; u32 CRC-32C of the entries, masked (crc32c.h); u32 zero; the
// entries. An entry is 0, or from the highest bit: 40 bits of the context's
// hash, 4 of how sure it is, 20 of the id.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/text/vocabulary.h"

namespace txl {

inline constexpr char kNgramsName[] = "ngrams.bin";

// Equal for vocabularies in which every id has the same bytes.
uint32_t VocabularyFingerprint(const Vocabulary& vocabulary);

// Hash of the last n ids for n = 1, 2, ...; each from the one before it.
inline uint64_t ExtendNgramHash(uint64_t hash, int32_t older_id) {
  // SplitMix64's finaliser (Steele, Lea, Flood 2014).
  uint64_t x = hash + 0x9e3779b97f4a7c15 * (uint64_t{1} + uint32_t(older_id));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// What follows a context.
struct NgramGuess {
  int32_t id = 0;
  int32_t level = 0;  // [0, kNgramLevels): about kNgramLevels x probability
};
inline constexpr int32_t kNgramLevels = 8;
inline constexpr int64_t kMostNgramIds = int64_t{1} << 20;  // of a vocabulary

// Const after construction: thread-safe.
class NgramTable {
 public:
  static constexpr int32_t kMostOrder = 32;

  // An empty table with room for `entries` guesses. REQUIRES: 1 <= order <=
  // kMostOrder, entries > 0.
  NgramTable(int32_t order, uint32_t fingerprint, int64_t entries);

  // Errors as ReadRegularFile; InvalidArgument where the file is not an n-gram
  // table, is damaged, or belongs to another vocabulary than that with
  // `fingerprint` and `vocab_size` ids.
  static absl::StatusOr<NgramTable> Read(const std::string& path,
                                         uint32_t fingerprint,
                                         int64_t vocab_size);
  // Writes as OutputFile does.
  absl::Status Write(const std::string& path) const;

  // `hash` of a context. False: it has no room there.
  bool Add(uint64_t hash, NgramGuess guess);

  // Guess after the longest end of `recent` in the table, newest id last.
  std::optional<NgramGuess> Next(absl::Span<const int32_t> recent) const;

  int32_t order() const { return order_; }
  int64_t size() const;  // n-grams; looks at all of them
  int64_t bytes() const {
    return static_cast<int64_t>(entries_.size() * sizeof(uint64_t));
  }

 private:
  NgramTable(int32_t order, uint32_t fingerprint, std::vector<uint64_t> entries)
      : order_(order),
        fingerprint_(fingerprint),
        entries_(std::move(entries)) {}

  std::optional<NgramGuess> Find(uint64_t hash) const;

  int32_t order_ = 0;
  uint32_t fingerprint_ = 0;
  std::vector<uint64_t> entries_;
};

// From a text's ids to a table of n-grams.

struct NgramOptions {
  int32_t order = 8;            // ids of a context at most, [1, kMostOrder]
  int64_t entries = 1'000'000;  // contexts kept: those met most often
};

// Counts what follows every context of 1 to `order` ids. A context is kept
// where it was met at least twice, and where it says more than its own end: its
// guess is another one, or it is more or less sure. How sure a
// guess is: how often it was right, counting one more time in which it was not.
// Takes about 24 bytes of memory for each id, and as many for each context that
// is kept before the rarest are left out.
// REQUIRES: ids in [0, kMostNgramIds).
NgramTable BuildNgrams(absl::Span<const int32_t> ids, uint32_t fingerprint,
                       const NgramOptions& options);

}  // namespace txl
