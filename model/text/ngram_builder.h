#pragma once

// From a text's ids to a table of n-grams.

#include <cstdint>

#include "absl/types/span.h"
#include "model/text/ngram_table.h"

namespace txl {

struct NgramOptions {
  int32_t order = 8;            // ids of a context at most, [1, kMostOrder]
  int64_t entries = 1'000'000;  // contexts kept: those met most often
};

// Counts what follows every context of 1 to `order` ids. A context is kept
// where it was met at least twice, and where it says more than its own end: its
// guess is another one, or it is more or less sure. How sure a
// guess is: how often it was right, counting one more time in which it was not.
// Takes some 24 bytes of memory an id, and as many for each context that is
// kept before the rarest are left out.
// REQUIRES: ids in [0, kMostNgramIds).
NgramTable BuildNgrams(absl::Span<const int32_t> ids, uint32_t fingerprint,
                       const NgramOptions& options);

}  // namespace txl
