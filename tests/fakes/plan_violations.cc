#include "tests/fakes/plan_violations.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

// Nothing, or why a row may not stand behind the one before it in its slot.
std::string WrongFollower(const StepRow& row, const StepRow& before,
                          const RunnerInfo& info) {
  const bool derives = row.kind == RowKind::kDerive;
  if (before.slot != row.slot || derives != (before.kind == RowKind::kDerive) ||
      (!derives && before.position + 1 != row.position)) {
    return "rows are not consecutive";
  }
  if (derives) return "";
  if (row.token_id == kLastSampled) return "last token not in the first row";
  const bool guess = info.verifies_guesses && row.kind == RowKind::kDecode;
  if (before.kind == RowKind::kDecode && !guess) {
    return "decodes before its last row";
  }
  return "";
}

}  // namespace

std::vector<std::string> PlanViolations(const StepPlan& plan,
                                        const RunnerInfo& info) {
  std::vector<std::string> violations;
  if (plan.rows.empty() ||
      static_cast<int32_t>(plan.rows.size()) > info.max_rows) {
    violations.push_back(absl::StrCat("plan of ", plan.rows.size(), " rows"));
  }
  std::map<int32_t, int64_t> rows_of_slot;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    if (++rows_of_slot[row.slot] > info.spare_rows &&
        row.kind != RowKind::kDerive) {
      violations.push_back(
          absl::StrCat("slot ", row.slot, ": more rows than spare"));
    }
    if (row.top_logprobs < 0 || row.top_logprobs > info.vocab_size) {
      violations.push_back(absl::StrCat("top_logprobs ", row.top_logprobs));
    }
    if (rows_of_slot[row.slot] == 1) continue;
    const std::string wrong = WrongFollower(row, plan.rows[i - 1], info);
    if (wrong.empty()) continue;
    violations.push_back(absl::StrCat("slot ", row.slot, ": ", wrong));
  }
  return violations;
}

}  // namespace txl
