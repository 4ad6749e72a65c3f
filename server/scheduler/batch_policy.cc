#include "server/scheduler/batch_policy.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "server/scheduler/row_division.h"

namespace txl {
namespace {

// Where a prompt stands among others.
std::tuple<int32_t, int64_t, size_t> Place(const BatchCandidate& prompt,
                                           size_t index) {
  return {-prompt.priority, prompt.prompt_rows + prompt.rows_later, index};
}

// What prompts keep of a step that streams alone would fill.
int64_t RowsOfPrompts(absl::Span<const size_t> prompting,
                      absl::Span<const int64_t> wanted,
                      const BatchLimits& limits) {
  int64_t all = 0;
  for (const size_t prompt : prompting) all += wanted[prompt];
  return std::min<int64_t>({all, limits.prompt_rows_per_step,
                            std::max(1, limits.max_rows / kPartOfPrompts)});
}

}  // namespace

std::vector<int64_t> PlanBatch(absl::Span<const BatchCandidate> candidates,
                               const BatchLimits& limits, uint64_t turn) {
  return PlanBatch(candidates, limits, turn,
                   [turn](bool streams, absl::Span<const size_t> members,
                          absl::Span<const int64_t> wanted, int64_t budget,
                          std::vector<int64_t>& rows) {
                     if (members.empty()) return;
                     const size_t given = turn * budget;
                     streams ? DivideRows(members, wanted, budget,
                                          given % members.size(), rows)
                             : PassRows(members, wanted, budget, given, rows);
                   });
}

std::vector<int64_t> PlanBatch(absl::Span<const BatchCandidate> candidates,
                               const BatchLimits& limits, uint64_t turn,
                               RowDivider divide) {
  std::vector<int64_t> rows(candidates.size(), 0);
  std::vector<int64_t> wanted(candidates.size(), 0);
  std::vector<size_t> decoding;
  std::vector<size_t> prompting;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].decode) {
      decoding.push_back(i);
      wanted[i] = 1;
    } else if (candidates[i].prompt_rows > 0) {
      prompting.push_back(i);
      wanted[i] = std::min(candidates[i].prompt_rows, limits.spare_rows);
    }
  }
  std::sort(prompting.begin(), prompting.end(), [&](size_t a, size_t b) {
    return Place(candidates[a], a) < Place(candidates[b], b);
  });
  int64_t kept = RowsOfPrompts(prompting, wanted, limits);
  if (limits.max_rows == 1 && !decoding.empty()) kept *= turn % 2;
  const int64_t streams = std::min<int64_t>(
      static_cast<int64_t>(decoding.size()), limits.max_rows - kept);
  divide(/*streams=*/true, decoding, wanted, streams, rows);
  const int64_t budget =
      std::min<int64_t>(limits.max_rows - streams, limits.prompt_rows_per_step);
  divide(/*streams=*/false, prompting, wanted, budget, rows);
  return rows;
}

}  // namespace txl
