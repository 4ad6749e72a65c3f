#pragma once

// Time as the load test counts it.

#include <cstdint>

namespace txl::bench {

// Nanoseconds of a clock that never goes back.
using Nanos = int64_t;

constexpr Nanos kNanosPerSecond = 1'000'000'000;

constexpr double ToSeconds(Nanos time) {
  return static_cast<double>(time) / static_cast<double>(kNanosPerSecond);
}
// Rounded to the nearest. REQUIRES: less than 290 years.
constexpr Nanos FromSeconds(double seconds) {
  const double nanos = seconds * static_cast<double>(kNanosPerSecond);
  return static_cast<Nanos>(nanos + (nanos < 0 ? -0.5 : 0.5));
}

}  // namespace txl::bench
