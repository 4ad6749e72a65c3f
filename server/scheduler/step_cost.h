#pragma once

// What a row costs a step, as the steps so far show it.

#include <array>
#include <cstdint>

namespace txl {

// Seconds of a step of streams = fixed + streams x stream + guesses x guess,
// by least squares over the last hundred steps or so. What these do not tell
// apart is held by two weak assumptions: a stream's row costs what a step costs
// without any, a guess half of that (it reads a memory that its stream's row
// reads too). Thread-compatible.
class StepCost {
 public:
  // A step of `streams` >= 1 rows that continue streams, and `guesses` >= 0
  // more of the same streams. One that took more than kMost times what was
  // expected counts as that: another program had the processor.
  void Note(int64_t streams, int64_t guesses, double seconds);

  bool known() const { return noted_ > 0; }
  // REQUIRES: known.
  double Seconds(int64_t streams, int64_t guesses) const;
  double OfGuess() const { return cost_[2]; }  // >= 0

  static constexpr double kMost = 4;

 private:
  using Vector = std::array<double, 3>;  // fixed, stream, guess

  void Solve();

  int64_t noted_ = 0;
  std::array<Vector, 3> squares_{};
  Vector sums_{};
  Vector cost_{};
};

}  // namespace txl
