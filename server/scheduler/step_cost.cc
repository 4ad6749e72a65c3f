#include "server/scheduler/step_cost.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace txl {
namespace {

constexpr double kKept = 0.99;  // of what older steps say, a step
// Before this many the steps are not expected to take anything.
constexpr int64_t kFewSteps = 16;
// The assumptions, as steps of no time that are never forgotten.
constexpr std::array<std::pair<std::array<double, 3>, double>, 2> kAssumed = {
    {{{1, -1, 0}, 0.01}, {{0, 0.5, -1}, 1}}};

}  // namespace

void StepCost::Note(int64_t streams, int64_t guesses, double seconds) {
  if (noted_ >= kFewSteps) {
    seconds = std::min(seconds, kMost * Seconds(streams, guesses));
  }
  const Vector step = {1, static_cast<double>(streams),
                       static_cast<double>(guesses)};
  for (size_t i = 0; i < step.size(); ++i) {
    for (size_t j = 0; j < step.size(); ++j) {
      squares_[i][j] = kKept * squares_[i][j] + step[i] * step[j];
    }
    sums_[i] = kKept * sums_[i] + step[i] * seconds;
  }
  ++noted_;
  Solve();
}

double StepCost::Seconds(int64_t streams, int64_t guesses) const {
  return cost_[0] + cost_[1] * static_cast<double>(streams) +
         cost_[2] * static_cast<double>(guesses);
}

// Gaussian elimination; the matrix is positive definite.
void StepCost::Solve() {
  std::array<Vector, 3> a = squares_;
  Vector b = sums_;
  for (const auto& [row, weight] : kAssumed) {
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = 0; j < row.size(); ++j) {
        a[i][j] += weight * row[i] * row[j];
      }
    }
  }
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = i + 1; k < a.size(); ++k) {
      const double factor = a[k][i] / a[i][i];
      for (size_t j = i; j < a.size(); ++j) a[k][j] -= factor * a[i][j];
      b[k] -= factor * b[i];
    }
  }
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = i + 1; j < a.size(); ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  for (size_t i = 0; i < b.size(); ++i) cost_[i] = std::max(b[i], 0.0);
}

}  // namespace txl
