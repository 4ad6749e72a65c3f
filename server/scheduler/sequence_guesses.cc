// Sequence: tokens that are guessed.

#include <cstddef>
#include <vector>

#include "server/scheduler/sequence.h"

namespace txl {

void Sequence::PlanGuesses(absl::Span<const int32_t> ids, int32_t slot,
                           std::vector<StepRow>& rows) {
  const size_t first = rows.size();
  // As if the device were to say what they feed.
  PlanRows(static_cast<int64_t>(ids.size()), slot, rows);
  for (size_t i = 0; i < ids.size(); ++i) rows[first + i].token_id = ids[i];
}

}  // namespace txl
