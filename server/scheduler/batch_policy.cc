#include "server/scheduler/batch_policy.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

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

namespace {

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

void DivideRows(absl::Span<const size_t> members,
                absl::Span<const int64_t> wanted, int64_t budget, size_t first,
                std::vector<int64_t>& rows) {
  const size_t n = members.size();
  if (budget >= static_cast<int64_t>(n)) {
    return ShareEvenly(members, wanted, budget, rows);
  }
  for (int64_t i = 0; i < budget; ++i) rows[members[(first + i) % n]] = 1;
}

void PassRows(absl::Span<const size_t> members,
              absl::Span<const int64_t> wanted, int64_t budget, size_t given,
              std::vector<int64_t>& rows) {
  if (members.empty()) return;
  const auto give = [&](size_t member, int64_t most) {
    const int64_t more =
        std::min({most, wanted[member] - rows[member], budget});
    rows[member] += more;
    budget -= more;
  };
  const size_t after = given + static_cast<size_t>(budget);
  give(*std::min_element(members.begin(), members.end()),
       static_cast<int64_t>(after / kRowsOfOldest - given / kRowsOfOldest));
  for (const size_t member : members) give(member, budget);
}

void TenantRows::Divide(absl::Span<const Tenant> tenants,
                        absl::Span<const size_t> members,
                        absl::Span<const int64_t> wanted, int64_t budget,
                        std::vector<int64_t>& rows) {
  int64_t all = 0;
  for (const size_t member : members) all += wanted[member];
  if (all <= budget) {
    order_.Clear();
    given_.clear();
    for (const size_t member : members) rows[member] = wanted[member];
    return;
  }
  Shares shares;
  for (const size_t member : members) {
    Share& share = shares[tenants[member].name];
    share.members.push_back(member);
    share.wanted += wanted[member];
  }
  LineUp(tenants, shares);
  for (; budget > 0; --budget) {
    const std::string next = order_.line().begin()->second;
    Share& share = shares.at(next);
    ++share.rows;
    order_.Charge(next, 1);
    if (share.rows == share.wanted) order_.Leave(next);
  }
  for (const auto& [name, share] : shares) {
    size_t& given = given_[name];
    rule_(share.members, wanted, share.rows, given, rows);
    given += static_cast<size_t>(share.rows);
  }
}

void TenantRows::LineUp(absl::Span<const Tenant> tenants,
                        const Shares& shares) {
  std::vector<std::string> gone;
  for (const auto& [start, name] : order_.line()) {
    if (shares.count(name) == 0) gone.push_back(name);
  }
  for (const std::string& name : gone) {
    order_.Leave(name);
    given_.erase(name);
  }
  for (const auto& [name, share] : shares) {
    order_.Join(name, tenants[share.members.front()].weight);
  }
}

}  // namespace txl
