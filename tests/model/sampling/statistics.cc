#include "tests/model/sampling/statistics.h"

#include <cmath>
#include <cstddef>
#include <numeric>

namespace txl {
namespace {

constexpr double kPrecision = 1e-14;
constexpr double kTiny = 1e-300;
constexpr double kMinExpected = 5;

// P(a, x) = x^a e^-x / Gamma(a) * sum_n x^n / (a (a+1) ... (a+n)).
double LowerBySeries(double a, double x) {
  double term = 1 / a;
  double sum = term;
  for (double n = a + 1; std::abs(term) > kPrecision * sum; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

// Q(a, x) by Lentz's evaluation of the continued fraction.
double UpperByFraction(double a, double x) {
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double fraction = d;
  for (int i = 1; i < 10000; ++i) {
    const double numerator = -i * (i - a);
    b += 2;
    d = numerator * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + numerator / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double factor = d * c;
    fraction *= factor;
    if (std::abs(factor - 1) < kPrecision) break;
  }
  return fraction * std::exp(a * std::log(x) - x - std::lgamma(a));
}

}  // namespace

double ChiSquareSurvival(double x, int degrees_of_freedom) {
  if (x <= 0) return 1;
  const double a = degrees_of_freedom / 2.0;
  x /= 2;
  return x < a + 1 ? 1 - LowerBySeries(a, x) : UpperByFraction(a, x);
}

double GoodnessOfFit(const std::vector<int64_t>& counts,
                     const std::vector<double>& probabilities) {
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  double rare_expected = 0;
  double rare_counted = 0;
  double statistic = 0;
  int cells = 0;
  const auto add_cell = [&](double counted, double expected) {
    statistic += (counted - expected) * (counted - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = n * probabilities[i];
    if (expected == 0 && counts[i] > 0) return 0;
    if (expected < kMinExpected) {
      rare_expected += expected;
      rare_counted += counts[i];
    } else {
      add_cell(counts[i], expected);
    }
  }
  if (rare_expected >= kMinExpected) {
    add_cell(rare_counted, rare_expected);
  } else if (rare_counted > 0) {
    // Too rare for the approximation: P(count >= counted) <= e^-e (e mu/m)^m.
    const double m = rare_counted;
    if (m > rare_expected &&
        std::exp(m - rare_expected + m * std::log(rare_expected / m)) < 1e-6) {
      return 0;
    }
  }
  return cells < 2 ? 1 : ChiSquareSurvival(statistic, cells - 1);
}

}  // namespace txl
