#include "client/bench/plan/arrivals.h"

#include <algorithm>
#include <cmath>

namespace txl::bench {
namespace {

// Keeps the arrivals' draws apart from those of the turns.
constexpr uint64_t kArrivalStream = 0x6172726976616c73;

}  // namespace

double RateProfile::Due(double seconds) const {
  const double ramp = std::min(seconds, ramp_seconds);
  double due = rate * (seconds - ramp);
  if (ramp > 0) {
    const double slope = (rate - ramp_from) / ramp_seconds;
    due += ramp_from * ramp + slope * ramp * ramp / 2;
  }
  return due;
}

double RateProfile::TimeOf(double due) const {
  if (due <= 0) return 0;
  const double in_ramp = Due(ramp_seconds);
  if (due >= in_ramp) return ramp_seconds + (due - in_ramp) / rate;
  // The root of slope/2 t^2 + from t - due that does not cancel.
  const double slope = (rate - ramp_from) / ramp_seconds;
  const double root =
      std::sqrt(std::max(0.0, ramp_from * ramp_from + 2 * slope * due));
  return 2 * due / (ramp_from + root);
}

Arrivals::Arrivals(ArrivalKind kind, const RateProfile& profile, uint64_t seed)
    : kind_(kind), profile_(profile), random_({seed, kArrivalStream}) {}

double Arrivals::Next() {
  if (kind_ == ArrivalKind::kPoisson) {
    due_ += random_.Exponential();
    return profile_.TimeOf(due_);
  }
  const double time = profile_.TimeOf(due_);
  due_ += 1;
  return time;
}

}  // namespace txl::bench
