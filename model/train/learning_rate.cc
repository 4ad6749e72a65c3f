#include "model/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace txl {

double LearningRateAt(const LearningRateSchedule& schedule, int64_t step) {
  if (step < schedule.warmup_steps) {
    return schedule.peak * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmup_steps);
  }
  const int64_t decay_steps =
      std::max<int64_t>(schedule.total_steps - schedule.warmup_steps, 1);
  const double progress =
      std::min(1.0, static_cast<double>(step - schedule.warmup_steps) /
                        static_cast<double>(decay_steps));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return schedule.peak *
         (schedule.final_share + (1 - schedule.final_share) * cosine);
}

}  // namespace txl
