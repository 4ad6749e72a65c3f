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
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/scheduler/admission_queue.h"

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

// PlanBatch with another rule for dividing rows that are short. `turn` only
// decides who gets a step of one row.
std::vector<int64_t> PlanBatch(absl::Span<const BatchCandidate> candidates,
                               const BatchLimits& limits, uint64_t turn,
                               RowDivider divide);

// How the rows of a step are divided if there are fewer than all want.

// Divides `budget` rows among `members`, which are indices into `rows` and
// `wanted`, and adds each share to `rows`. The division is max-min fair: a
// member gets more than another only if the other wants no more. What does not
// divide evenly goes to the first members, one row each. With fewer rows than
// members, some members get one row: round-robin, beginning with `first`.
void DivideRows(absl::Span<const size_t> members,
                absl::Span<const int64_t> wanted, int64_t budget, size_t first,
                std::vector<int64_t>& rows);

// Divides rows between prompts, whose rows are worth nothing before their last
// one: prompts are served one after the other, in the order of `members`,
// instead of side by side. But every kRowsOfOldest-th row goes to the oldest
// member, the one with the lowest index; the count goes on after the `given`
// rows that were given before. So a member that others pass is done at the
// latest when this share of the rows has come to all older members and to it.
void PassRows(absl::Span<const size_t> members,
              absl::Span<const int64_t> wanted, int64_t budget, size_t given,
              std::vector<int64_t>& rows);
inline constexpr size_t kRowsOfOldest = 8;

// Divides rows between tenants. If they want more rows than there are, each
// tenant gets rows by its weight (admission_queue.h), and its members share
// them by one of the rules above. The object remembers service only while rows
// are short: from the first such step to the next step with enough rows. A
// tenant that wants little is therefore never behind.
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
