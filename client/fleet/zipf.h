#pragma once

// Which of very many sessions is used next.

#include <cstdint>

#include "client/bench/plan/random.h"

namespace txl::fleet {

// Zipf's distribution: rank k of 1..n has a probability in proportion to
// k^-exponent; 0 is uniform. By rejection-inversion (Hoermann, Derflinger,
// "Rejection-inversion to generate variates from monotone discrete
// distributions", ACM TOMACS 6, 1996): no table, whatever n is.
class Zipf {
 public:
  // REQUIRES: n > 0, exponent >= 0.
  Zipf(int64_t n, double exponent);

  int64_t Draw(bench::Random& random) const;  // 1..n

 private:
  // The integral of x^-exponent from 1, and its inverse.
  double Integral(double x) const;
  double Inverse(double area) const;
  double Weight(double x) const;

  int64_t n_;
  double exponent_;
  double low_;  // areas that are drawn from
  double high_;
};

}  // namespace txl::fleet
