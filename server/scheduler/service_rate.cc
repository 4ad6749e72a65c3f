#include "server/scheduler/service_rate.h"

#include <algorithm>

namespace txl {
namespace {

// Weight of the last turn in the mean of what turns generate.
constexpr double kNewest = 1.0 / 16;

}  // namespace

void ServiceRate::NoteStep(int64_t tokens, bool waiting, absl::Duration now) {
  if (since_.has_value()) {
    busy_ += std::max(now - *since_, absl::ZeroDuration());
    tokens_ += tokens;
  }
  since_.reset();
  if (waiting) since_ = now;
  if (busy_ < kWindow) return;
  const double rate =
      static_cast<double>(tokens_) / absl::ToDoubleSeconds(busy_);
  rate_ = std::max(rate, (rate_.value_or(rate) + rate) / 2);
  busy_ = absl::ZeroDuration();
  tokens_ = 0;
}

void ServiceRate::NoteTurn(int64_t generated) {
  generated_ += kNewest * (static_cast<double>(generated) - generated_);
}

double ServiceRate::Expected(int64_t max_tokens) const {
  return std::min(static_cast<double>(max_tokens), generated_);
}

bool IsUnreachable(double tokens, double tokens_per_second,
                   absl::Duration left) {
  return tokens >
         kDeadlineSafety * tokens_per_second * absl::ToDoubleSeconds(left);
}

}  // namespace txl
