#pragma once

// Linear warm-up, then cosine decay (Loshchilov and Hutter 2017).

#include <cstdint>

namespace txl {

struct LearningRateSchedule {
  double peak = 1e-3;          // > 0
  double final_share = 0;      // of peak, reached at the last step; [0, 1]
  int64_t warmup_steps = 200;  // >= 0
  int64_t total_steps = 4000;  // > 0
};

// For step 0 <= step < total_steps: rises to the peak within warmup_steps,
// falls to peak * final_share at total_steps.
double LearningRateAt(const LearningRateSchedule& schedule, int64_t step);

}  // namespace txl
