#pragma once

// What a server's steps cost, from measurements (docs/measurements.md).

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace txl::fleet {

// The time of a step over how many streams share it.
class StepCosts {
 public:
  // A second for each stream.
  StepCosts() : points_{{1, 1}} {}
  // Points "STREAMS:SECONDS", e.g. {"1:0.001", "32:0.0018"}.
  // Errors: InvalidArgument for none, for another form, or where streams or
  // seconds do not grow from point to point (seconds may stay).
  static absl::StatusOr<StepCosts> Parse(
      const std::vector<std::string>& points);

  // Straight lines between the points; before the first its time, behind the
  // last one in proportion to the streams. REQUIRES: streams > 0.
  double Seconds(double streams) const;

 private:
  struct Point {
    double streams = 0;
    double seconds = 0;
  };
  explicit StepCosts(std::vector<Point> points) : points_(std::move(points)) {}

  std::vector<Point> points_;
};

}  // namespace txl::fleet
