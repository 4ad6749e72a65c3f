#pragma once

// Small arithmetic around measurements: lists of counts, quantiles, curves.
// Pure functions.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// "1,8,32", "1-40", "1-4,64": every count named, in order. InvalidArgument
// unless all are integers in [1, 65536] and ranges ascend.
absl::StatusOr<std::vector<int>> ParseCounts(absl::string_view text);

// The smallest value that at least `share` of the values do not exceed.
// REQUIRES: values not empty, share in (0, 1].
double Quantile(std::vector<double> values, double share);

// Six significant digits: measurements have no more that mean anything.
double Rounded(double x);

struct CurvePoint {
  double x = 0;
  double y = 0;
};

// y at x, linear in log x between neighbouring points, the end points' y
// outside of them. REQUIRES: points not empty, x > 0 and ascending.
double Interpolate(const std::vector<CurvePoint>& points, double x);

}  // namespace txl
