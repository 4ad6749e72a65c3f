#include "client/bench/result/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace txl::bench {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 320;
constexpr double kLeft = 72;
constexpr double kRight = 16;
constexpr double kTop = 48;
constexpr double kBottom = 48;

// From values to places on the picture.
class Scale {
 public:
  Scale(const Axis& axis, double low, double high, double from, double to)
      : logarithmic_(axis.logarithmic), from_(from), to_(to) {
    low_ = axis.low.value_or(low);
    high_ = axis.high.value_or(high);
    if (!logarithmic_ && !axis.low) low_ = std::min(low_, 0.0);
    if (high_ <= low_) high_ = logarithmic_ ? low_ * 10 : low_ + 1;
  }

  bool Holds(double value) const {
    return std::isfinite(value) && (!logarithmic_ || value > 0);
  }
  bool Inside(double value) const {
    return Holds(value) && value >= low_ && value <= high_;
  }
  double operator()(double value) const {
    const double share = (At(value) - At(low_)) / (At(high_) - At(low_));
    return from_ + (to_ - from_) * std::clamp(share, 0.0, 1.0);
  }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double At(double value) const {
    return logarithmic_ ? std::log(value) : value;
  }
  bool logarithmic_;
  double low_;
  double high_;
  double from_;
  double to_;
};

Scale MakeScale(const Chart& chart, bool is_x) {
  const Axis& axis = is_x ? chart.x : chart.y;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Line& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      const double value = is_x ? x : y;
      if (!std::isfinite(value) || (axis.logarithmic && value <= 0)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) low = high = 1;
  return is_x ? Scale(axis, low, high, kLeft, kWidth - kRight)
              : Scale(axis, low, high, kHeight - kBottom, kTop);
}

std::string Text(double x, double y, const char* anchor,
                 absl::string_view text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s"
      "</text>\n",
      x, y, anchor, EscapeMarkup(text));
}

std::string Rule(double x1, double y1, double x2, double y2, const char* kind) {
  return absl::StrFormat(
      "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
      kind, x1, y1, x2, y2);
}

std::string DrawAxes(const Chart& chart, const Scale& x, const Scale& y) {
  std::string svg;
  const auto ticks = [](const Axis& axis, const Scale& scale) {
    return axis.ticks.empty()
               ? RoundTicks(scale.low(), scale.high(), axis.logarithmic)
               : axis.ticks;
  };
  for (const Tick& tick : ticks(chart.y, y)) {
    if (!y.Inside(tick.at)) continue;
    svg += Rule(kLeft, y(tick.at), kWidth - kRight, y(tick.at), "grid");
    svg += Text(kLeft - 6, y(tick.at) + 4, "end", tick.label);
  }
  for (const Tick& tick : ticks(chart.x, x)) {
    if (!x.Inside(tick.at)) continue;
    svg += Rule(x(tick.at), kHeight - kBottom, x(tick.at),
                kHeight - kBottom + 4, "axis");
    svg += Text(x(tick.at), kHeight - kBottom + 17, "middle", tick.label);
  }
  svg += Rule(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom,
              "axis");
  svg += Rule(kLeft, kTop, kLeft, kHeight - kBottom, "axis");
  svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle",
              chart.x.title);
  svg += Text(6, kTop - 8, "start", chart.y.title);
  return svg;
}

std::string DrawGuides(const Chart& chart, const Scale& x, const Scale& y) {
  std::string svg;
  for (const Guide& guide : chart.guides) {
    const bool across = guide.kind == Guide::Kind::kHorizontal;
    if (!(across ? y : x).Inside(guide.at)) continue;
    if (across) {
      svg += Rule(kLeft, y(guide.at), kWidth - kRight, y(guide.at), "guide");
      svg += Text(kWidth - kRight - 4, y(guide.at) - 4, "end", guide.name);
      continue;
    }
    if (guide.kind == Guide::Kind::kBand) {
      absl::StrAppendFormat(&svg,
                            "<rect class=\"band\" x=\"%.1f\" y=\"%.1f\" "
                            "width=\"%.1f\" height=\"%.1f\"/>\n",
                            x(guide.at), kTop,
                            std::max(1.0, x(guide.to) - x(guide.at)),
                            kHeight - kTop - kBottom);
    } else {
      svg += Rule(x(guide.at), kTop, x(guide.at), kHeight - kBottom, "guide");
    }
    // Names of bands one line lower, as a band may begin at a line.
    const bool band = guide.kind == Guide::Kind::kBand;
    svg += Text(x(guide.at) + 4, kTop + (band ? 28 : 12), "start", guide.name);
  }
  return svg;
}

std::string DrawLine(const Line& line, const Scale& x, const Scale& y) {
  std::string path;
  std::string dots;
  for (const auto& [px, py] : line.points) {
    if (!x.Holds(px) || !y.Holds(py)) continue;
    absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "M" : " L",
                          x(px), y(py));
    if (line.marked) {
      absl::StrAppendFormat(
          &dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
          x(px), y(py), line.color);
    }
  }
  if (path.empty()) return "";
  return absl::StrFormat(
      "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"/>\n%s",
      path, line.color, dots);
}

std::string DrawLegend(const Chart& chart) {
  std::string svg;
  double x = kWidth - kRight;
  for (auto line = chart.lines.rbegin(); line != chart.lines.rend(); ++line) {
    x -= 7.0 * static_cast<double>(line->name.size());
    svg += Text(x, kTop - 8, "start", line->name);
    absl::StrAppendFormat(
        &svg,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"4\" "
        "fill=\"%s\"/>\n",
        x - 14, kTop - 14, line->color);
    x -= 26;
  }
  return svg;
}

}  // namespace

std::string EscapeMarkup(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

std::vector<Tick> RoundTicks(double low, double high, bool logarithmic,
                             int count) {
  std::vector<Tick> ticks;
  const auto add = [&](double value) {
    if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) {
      ticks.push_back({value, absl::StrFormat("%.6g", value)});
    }
  };
  const double decades = logarithmic ? std::log10(high / low) : 0;
  // Too little for powers of ten.
  constexpr double kFewDecades = 0.8;
  if (logarithmic && decades > kFewDecades) {
    for (double e = std::floor(std::log10(low)); e <= std::log10(high); ++e) {
      add(std::pow(10, e));
      if (decades <= count / 2.0) {
        add(2 * std::pow(10, e));
        add(5 * std::pow(10, e));
      }
    }
    return ticks;
  }
  const double raw = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double share = raw / power;
  const double step = power * (share < 1.5   ? 1
                               : share < 3.5 ? 2
                               : share < 7.5 ? 5
                                             : 10);
  for (double i = std::ceil(low / step); i * step <= high * (1 + 1e-9); ++i) {
    ticks.push_back({i * step, absl::StrFormat("%.6g", i * step)});
  }
  return ticks;
}

std::string ToSvg(const Chart& chart) {
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" "
      "xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<title>%s</title>\n"
      "<style>.grid{stroke:#ddd}.axis{stroke:#333}.guide{stroke:#a33;"
      "stroke-dasharray:4 3}.band{fill:#a33;opacity:.15}</style>\n"
      "<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n"
      "<text x=\"6\" y=\"18\" font-size=\"14\" font-weight=\"bold\">%s"
      "</text>\n",
      kWidth, kHeight, kWidth, kHeight, EscapeMarkup(chart.title), kWidth,
      kHeight, EscapeMarkup(chart.title));
  const Scale x = MakeScale(chart, true);
  const Scale y = MakeScale(chart, false);
  std::string drawn;
  for (const Line& line : chart.lines) drawn += DrawLine(line, x, y);
  if (drawn.empty()) {
    svg += Text(kWidth / 2, kHeight / 2, "middle", "nothing was measured");
  } else {
    svg += DrawAxes(chart, x, y) + DrawGuides(chart, x, y) + drawn +
           DrawLegend(chart);
  }
  return svg + "</svg>\n";
}

}  // namespace txl::bench
