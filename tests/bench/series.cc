#include "tests/bench/series.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace txl {
namespace {

constexpr int kMaxCount = 65536;

bool ParseCount(absl::string_view text, int* count) {
  return absl::SimpleAtoi(text, count) && *count >= 1 && *count <= kMaxCount;
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCounts(absl::string_view text) {
  std::vector<int> counts;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(item, absl::MaxSplits('-', 1));
    const bool is_range = absl::StrContains(item, "-");
    int first = 0, last = 0;
    if (!ParseCount(ends.first, &first) ||
        !ParseCount(is_range ? ends.second : ends.first, &last) ||
        first > last) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", item, "\" is not a count in [1, ", kMaxCount,
                       "] and no range of them, as in 1,8,32 or 1-40"));
    }
    for (int count = first; count <= last; ++count) counts.push_back(count);
  }
  return counts;
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

double Rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::pow(10, 5 - std::floor(std::log10(std::abs(x))));
  return std::round(x * unit) / unit;
}

double Interpolate(const std::vector<CurvePoint>& points, double x) {
  const auto right =
      std::find_if(points.begin(), points.end(),
                   [x](const CurvePoint& point) { return point.x >= x; });
  if (right == points.begin()) return right->y;
  if (right == points.end()) return points.back().y;
  const CurvePoint& left = *(right - 1);
  const double share = std::log(x / left.x) / std::log(right->x / left.x);
  return left.y + share * (right->y - left.y);
}

}  // namespace txl
