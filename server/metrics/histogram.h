#pragma once

// Counts of observed values by upper bounds that are fixed from the start.
// Observing takes no memory.

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace txl {

// Not thread-safe; copies are independent.
class Histogram {
 public:
  static constexpr size_t kMaxBounds = 24;

  // `bounds` ascend, are at most kMaxBounds and outlive every copy. Values over
  // the last one are counted too.
  explicit Histogram(absl::Span<const double> bounds) : bounds_(bounds) {}

  void Observe(double value);
  // What the other one has observed, too. REQUIRES: the same bounds.
  void Add(const Histogram& other);

  absl::Span<const double> bounds() const { return bounds_; }
  // Values that were at most bounds()[i].
  int64_t AtMost(size_t i) const;
  int64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  absl::Span<const double> bounds_;
  std::array<int64_t, kMaxBounds + 1> counts_{};  // of each bound alone; rest
  int64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace txl
