#include "client/bench/plan/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace txl::bench {
namespace {

std::vector<double> Until(Arrivals arrivals, double seconds) {
  std::vector<double> times;
  for (double t = arrivals.Next(); t < seconds; t = arrivals.Next()) {
    times.push_back(t);
  }
  return times;
}

TEST(ConstantArrivals, AreEvenlySpacedFromTheStart) {
  const std::vector<double> times =
      Until(Arrivals(ArrivalKind::kConstant, {.rate = 4}, 0), 2);
  ASSERT_EQ(times.size(), 8u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_DOUBLE_EQ(times[i], static_cast<double>(i) / 4);
  }
}

TEST(PoissonArrivals, HaveTheGapsOfAPoissonProcess) {
  const std::vector<double> times =
      Until(Arrivals(ArrivalKind::kPoisson, {.rate = 50}, 3), 400);
  const auto n = static_cast<double>(times.size());
  EXPECT_NEAR(n, 20'000, 5 * std::sqrt(20'000));
  double sum = 0;
  double squares = 0;
  int64_t above_mean = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    const double gap = times[i] - times[i - 1];
    EXPECT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
    above_mean += gap > 0.02;
  }
  // An exponential's deviation is its mean; 1/e of it lie above the mean.
  const double mean = sum / n;
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean) / mean, 1, 0.05);
  EXPECT_NEAR(static_cast<double>(above_mean) / n, std::exp(-1), 0.02);
}

TEST(PoissonArrivals, AreAFunctionOfTheSeed) {
  const auto make = [](uint64_t seed) {
    return Until(Arrivals(ArrivalKind::kPoisson, {.rate = 10}, seed), 5);
  };
  EXPECT_EQ(make(1), make(1));
  EXPECT_NE(make(1), make(2));
}

// The number that is due by a time, added up in small steps.
double Integrate(const RateProfile& profile, double seconds) {
  constexpr int kSteps = 200'000;
  const double step = seconds / kSteps;
  double due = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double t = (i + 0.5) * step;
    const double share =
        profile.ramp_seconds > 0 ? std::min(1.0, t / profile.ramp_seconds) : 1;
    due +=
        step * (profile.ramp_from + (profile.rate - profile.ramp_from) * share);
  }
  return due;
}

TEST(Ramps, MakeDueWhatTheRateAddsUpTo) {
  for (const RateProfile& profile :
       {RateProfile{.rate = 20},
        RateProfile{.rate = 20, .ramp_from = 0, .ramp_seconds = 4},
        RateProfile{.rate = 20, .ramp_from = 5, .ramp_seconds = 4},
        RateProfile{.rate = 5, .ramp_from = 20, .ramp_seconds = 4}}) {
    for (const double t : {0.5, 2.0, 4.0, 7.0}) {
      EXPECT_NEAR(profile.Due(t), Integrate(profile, t), 1e-3);
      EXPECT_NEAR(profile.TimeOf(profile.Due(t)), t, 1e-9);
    }
    EXPECT_EQ(profile.TimeOf(0), 0);
  }
}

TEST(Ramps, SpaceConstantArrivalsCloserAndCloser) {
  const RateProfile profile{.rate = 10, .ramp_from = 0, .ramp_seconds = 10};
  const std::vector<double> times =
      Until(Arrivals(ArrivalKind::kConstant, profile, 0), 20);
  // t^2 / 2 are due in the ramp: 50; then 10 a second.
  ASSERT_EQ(times.size(), 150u);
  EXPECT_DOUBLE_EQ(times[2], 2);
  EXPECT_DOUBLE_EQ(times[18], 6);
  EXPECT_DOUBLE_EQ(times[50], 10);
  EXPECT_DOUBLE_EQ(times[60], 11);
}

}  // namespace
}  // namespace txl::bench
