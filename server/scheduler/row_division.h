#pragma once

// How the rows of a step are divided where not everybody gets what it wants.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/scheduler/fair_order.h"

namespace txl {

// Adds to `rows` what each of `members`, indices into `rows` and `wanted`, gets
// of `budget` rows: max-min fair, nobody gets more than another who still wants
// rows, but for the rest of the division, which goes to the first. Where there
// are fewer rows than members, one each from member `first` on, in a circle.
void DivideRows(absl::Span<const size_t> members,
                absl::Span<const int64_t> wanted, int64_t budget, size_t first,
                std::vector<int64_t>& rows);

// The same for prompts, whose rows are worth nothing before their last one: one
// after the other, in the order of `members`, instead of side by side. But
// every kRowsOfOldest-th row, counted from `given`, which had theirs before, is
// the oldest member's, the one with the lowest index: so whoever is passed by
// others is done at the latest when this share of the rows has come to all who
// are older than him, and to him.
void PassRows(absl::Span<const size_t> members,
              absl::Span<const int64_t> wanted, int64_t budget, size_t given,
              std::vector<int64_t>& rows);
inline constexpr size_t kRowsOfOldest = 8;

// The same between tenants: where they want more than there is, each tenant
// gets rows by its weight (fair_order.h), which its members share by one of the
// rules above. What it remembers begins with the step in which rows are short,
// and ends with the next in which they are not: who wants little is never
// behind.
class TenantRows {
 public:
  using Rule = void(absl::Span<const size_t> members,
                    absl::Span<const int64_t> wanted, int64_t budget,
                    size_t given, std::vector<int64_t>& rows);
  struct Tenant {
    std::string name;
    double weight = 1;  // > 0
  };

  // `rule`: among the members of a tenant.
  explicit TenantRows(Rule* rule) : rule_(rule) {}

  // `tenants`: of every index into `rows`.
  void Divide(absl::Span<const Tenant> tenants,
              absl::Span<const size_t> members,
              absl::Span<const int64_t> wanted, int64_t budget,
              std::vector<int64_t>& rows);

 private:
  struct Share {
    std::vector<size_t> members;
    int64_t wanted = 0;
    int64_t rows = 0;
  };
  using Shares = std::map<std::string, Share>;

  // Who stands in line, of those whose shares these are.
  void LineUp(absl::Span<const Tenant> tenants, const Shares& shares);

  Rule* const rule_;
  FairOrder order_;
  // Rows that a tenant's members have had in turn, since rows were short.
  std::map<std::string, size_t> given_;
};

}  // namespace txl
