#pragma once

// Pearson's chi-square test of counts against probabilities.

#include <cstdint>
#include <vector>

namespace txl {

// Q(k/2, x/2): the probability that a chi-square variable with k >= 1 degrees
// of freedom exceeds x >= 0. Regularised upper incomplete gamma function by its
// series below a + 1 and its continued fraction above (Abramowitz and Stegun,
// 6.5.29 and 6.5.31).
double ChiSquareSurvival(double x, int degrees_of_freedom);

// The probability of counts at least as far from `probabilities` (summing to
// 1) as these. Cells that expect fewer than 5 are joined. 0 when something of
// probability 0 was counted.
double GoodnessOfFit(const std::vector<int64_t>& counts,
                     const std::vector<double>& probabilities);

}  // namespace txl
