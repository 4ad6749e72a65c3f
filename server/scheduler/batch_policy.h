#pragma once

// Which rows the next step takes: a pure function of a snapshot.
//
// Every decoding sequence gets its row in every step, so that a prompt never
// stops a running stream; where streams would leave less than an eighth of a
// step, they take turns in the rest of it, so that they do not stop prompts
// either. Prompts get what is left one after the other: the
// more urgent first, then the one with the fewest rows left (shortest remaining
// time first has the least mean time to the first token: Schrage 1968), then
// the older. So a long prompt does not delay a short one, and equal ones do not
// all wait for the last. A share of the rows is the oldest's whatever comes
// after it (PassRows), so that none starves.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace txl {

// A sequence that could take rows now.
struct BatchCandidate {
  bool decode = false;      // one row that continues a stream
  int64_t prompt_rows = 0;  // rows of input that could come now, if not decode
  int64_t rows_later = 0;   // of input, behind those
  int32_t priority = 0;     // more goes first
};

struct BatchLimits {
  int32_t max_rows = 0;              // of a step
  int32_t prompt_rows_per_step = 0;  // over all sequences
  int64_t spare_rows = 0;            // of one sequence in a step
};

// Rows for each candidate, 0 where it has to wait; candidates stand oldest
// first. `turn` counts the steps: where not everybody fits, the places go
// round with it. Promises: the sum is at most max_rows and positive when there
// is a candidate; prompt rows are at most prompt_rows_per_step in all and
// spare_rows each; every decoding candidate is in, unless more than max_rows
// would be, less what waiting prompts want of the kPartOfPrompts-th part of it
// (one row at least; a step of one row is theirs every other turn).
std::vector<int64_t> PlanBatch(absl::Span<const BatchCandidate> candidates,
                               const BatchLimits& limits, uint64_t turn);
inline constexpr int32_t kPartOfPrompts = 8;

// Adds to `rows` what each of `members`, indices of candidates, gets of
// `budget` rows; `wanted` has what each could take. Streams want one row;
// prompts stand in the order in which they go.
using RowDivider =
    absl::FunctionRef<void(bool streams, absl::Span<const size_t> members,
                           absl::Span<const int64_t> wanted, int64_t budget,
                           std::vector<int64_t>& rows)>;

// The same with another rule for who gets the rows that are short; `turn` only
// says whose a step of one row is.
std::vector<int64_t> PlanBatch(absl::Span<const BatchCandidate> candidates,
                               const BatchLimits& limits, uint64_t turn,
                               RowDivider divide);

}  // namespace txl
