#pragma once

// Line charts as SVG, for pages that need nothing from elsewhere.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl::bench {

// &, <, >, " and ' as entities; control characters become spaces.
std::string EscapeMarkup(absl::string_view text);

struct Tick {
  double at = 0;
  std::string label;
};

struct Axis {
  std::string title;
  bool logarithmic = false;  // values <= 0 are then left out
  // Its ends; absent: those of the values, of a linear axis with 0.
  std::optional<double> low;
  std::optional<double> high;
  std::vector<Tick> ticks;  // empty: round numbers
};

struct Line {
  std::string name;
  std::string color;  // "#4477aa"
  std::vector<std::pair<double, double>> points;
  bool marked = false;  // a dot at each point
};

// A mark across the chart.
struct Guide {
  enum class Kind { kVertical, kHorizontal, kBand };
  Kind kind = Kind::kVertical;
  double at = 0;
  double to = 0;  // of a band: [at, to) of the x axis
  std::string name;
};

struct Chart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Line> lines;
  std::vector<Guide> guides;
};

// Round numbers within [low, high], about `count`; for a logarithmic axis of
// more than a few units 1, 2 and 5 times powers of ten (or the powers alone).
std::vector<Tick> RoundTicks(double low, double high, bool logarithmic,
                             int count = 6);

// An <svg> element of 720 by 320; with a note instead of lines when there are
// no points. Points that are not finite are left out.
std::string ToSvg(const Chart& chart);

}  // namespace txl::bench
