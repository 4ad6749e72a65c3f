#include "server/scheduler/batch_policy.h"

#include <algorithm>
#include <cstddef>

namespace txl {
namespace {

// One row each for `count` of the members, beginning with another in each turn.
void OneRowEach(absl::Span<const size_t> members, int64_t count, uint64_t turn,
                std::vector<int64_t>& rows) {
  const size_t n = members.size();
  const size_t first = count == 0 ? 0 : turn * count % n;
  for (int64_t i = 0; i < count; ++i) rows[members[(first + i) % n]] = 1;
}

// Max-min fair: nobody gets more than another who still wants rows, but for
// the rest of the division, which goes to the oldest.
void ShareEvenly(absl::Span<const size_t> members,
                 absl::Span<const int64_t> wanted, int64_t budget,
                 std::vector<int64_t>& rows) {
  std::vector<size_t> open(members.begin(), members.end());
  while (budget > 0 && !open.empty()) {
    const auto n = static_cast<int64_t>(open.size());
    const int64_t share = std::max<int64_t>(1, budget / n);
    std::vector<size_t> still_open;
    for (size_t member : open) {
      const int64_t more =
          std::min({share, wanted[member] - rows[member], budget});
      rows[member] += more;
      budget -= more;
      if (rows[member] < wanted[member]) still_open.push_back(member);
    }
    open = std::move(still_open);
  }
}

}  // namespace

std::vector<int64_t> PlanBatch(absl::Span<const BatchCandidate> candidates,
                               const BatchLimits& limits, uint64_t turn) {
  std::vector<int64_t> rows(candidates.size(), 0);
  std::vector<int64_t> wanted(candidates.size(), 0);
  std::vector<size_t> decoding;
  std::vector<size_t> prompting;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].decode) {
      decoding.push_back(i);
    } else if (candidates[i].prompt_rows > 0) {
      prompting.push_back(i);
      wanted[i] = std::min(candidates[i].prompt_rows, limits.spare_rows);
    }
  }
  // Where streams alone would fill the step, prompts keep one row of it; a step
  // of one row goes to both in turn.
  int64_t kept = prompting.empty() || limits.prompt_rows_per_step == 0 ? 0 : 1;
  if (limits.max_rows == 1 && !decoding.empty()) kept *= turn % 2;
  const int64_t streams = std::min<int64_t>(
      static_cast<int64_t>(decoding.size()), limits.max_rows - kept);
  OneRowEach(decoding, streams, turn, rows);

  const int64_t budget =
      std::min<int64_t>(limits.max_rows - streams, limits.prompt_rows_per_step);
  const auto waiting = static_cast<int64_t>(prompting.size());
  if (waiting > budget) {
    OneRowEach(prompting, budget, turn, rows);
  } else {
    ShareEvenly(prompting, wanted, budget, rows);
  }
  return rows;
}

}  // namespace txl
