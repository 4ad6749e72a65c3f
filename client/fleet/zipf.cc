#include "client/fleet/zipf.h"

#include <algorithm>
#include <cmath>

namespace txl::fleet {

Zipf::Zipf(int64_t n, double exponent)
    : n_(n),
      exponent_(exponent),
      low_(Integral(1.5) - 1),
      high_(Integral(static_cast<double>(n) + 0.5)) {}

double Zipf::Weight(double x) const { return std::pow(x, -exponent_); }

double Zipf::Integral(double x) const {
  const double rest = 1 - exponent_;
  // (x^rest - 1) / rest, exact where rest is close to 0.
  const double log = std::log(x);
  return rest == 0 ? log : std::expm1(rest * log) / rest;
}

double Zipf::Inverse(double area) const {
  const double rest = 1 - exponent_;
  return std::exp(rest == 0 ? area : std::log1p(rest * area) / rest);
}

int64_t Zipf::Draw(bench::Random& random) const {
  while (true) {
    const double area = low_ + (high_ - low_) * random.Uniform();
    const auto rank = std::clamp<int64_t>(std::llround(Inverse(area)), 1, n_);
    // A rank owns the area up to its middle, less what is not its own.
    const auto k = static_cast<double>(rank);
    if (area >= Integral(k + 0.5) - Weight(k)) return rank;
  }
}

}  // namespace txl::fleet
