#include "client/fleet/step_costs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace txl::fleet {

absl::StatusOr<StepCosts> StepCosts::Parse(
    const std::vector<std::string>& points) {
  std::vector<Point> parsed;
  for (const std::string& text : points) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits(':', 1));
    Point point;
    if (!absl::SimpleAtod(parts.first, &point.streams) ||
        !absl::SimpleAtod(parts.second, &point.seconds) ||
        !(point.streams > 0) || !(point.seconds > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is not STREAMS:SECONDS, both above 0"));
    }
    if (!parsed.empty() && (point.streams <= parsed.back().streams ||
                            point.seconds < parsed.back().seconds)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' must be above the point before it"));
    }
    parsed.push_back(point);
  }
  if (parsed.empty()) {
    return absl::InvalidArgumentError("a step's time needs a point");
  }
  return StepCosts(std::move(parsed));
}

double StepCosts::Seconds(double streams) const {
  const auto next = std::find_if(
      points_.begin(), points_.end(),
      [streams](const Point& point) { return streams <= point.streams; });
  if (next == points_.begin()) return next->seconds;
  const Point& last = *(next - 1);
  if (next == points_.end()) return last.seconds * streams / last.streams;
  const double share =
      (streams - last.streams) / (next->streams - last.streams);
  return last.seconds + share * (next->seconds - last.seconds);
}

}  // namespace txl::fleet
