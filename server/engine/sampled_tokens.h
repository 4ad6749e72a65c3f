#pragma once

// Which sampled tokens the host never got. The next step is queued before the
// last one's tokens are read, so a token that was lost shows only when the
// steps behind it are collected.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/step_runner.h"

namespace txl {

// Thread-compatible.
class SampledTokens {
 public:
  explicit SampledTokens(int32_t slots)
      : sampled_in_(slots, kNoStep), lost_in_(slots, kNoStep) {}

  // Returns for each row of the plan the step that sampled the token which it
  // feeds. Called in the order of submission. REQUIRES: CheckPlan is OK.
  std::vector<StepId> Submitted(StepId step, const StepPlan& plan) {
    std::vector<StepId> token_of;
    for (const StepRow& row : plan.rows) {
      const bool last = row.token_id == kLastSampled;
      token_of.push_back(last ? sampled_in_[row.slot] : kNoStep);
    }
    for (const StepRow& row : plan.rows) {
      if (row.kind == RowKind::kDecode) sampled_in_[row.slot] = step;
    }
    return token_of;
  }

  // Which rows feed a token that is lost. REQUIRES: all steps before were
  // collected. `token_of`: what Submitted returned.
  std::vector<bool> Lost(const StepPlan& plan,
                         const std::vector<StepId>& token_of) const {
    std::vector<bool> lost;
    for (size_t i = 0; i < token_of.size(); ++i) {
      lost.push_back(token_of[i] != kNoStep &&
                     token_of[i] == lost_in_[plan.rows[i].slot]);
    }
    return lost;
  }

  void Collected(StepId step, const StepPlan& plan,
                 const absl::StatusOr<StepResult>& result) {
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      if (plan.rows[i].kind != RowKind::kDecode) continue;
      if (result.ok() && result->rows[i].status.ok()) continue;
      lost_in_[plan.rows[i].slot] = step;
    }
  }

 private:
  static constexpr StepId kNoStep = -1;

  std::vector<StepId> sampled_in_, lost_in_;  // the last one of each slot
};

}  // namespace txl
