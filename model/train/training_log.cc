#include "model/train/training_log.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/train/model_files.h"
#include "model/train/run_folder.h"

namespace txl {
namespace {

// The picture's size and the plotted part, in pixels.
constexpr double kWidth = 720, kHeight = 400;
constexpr double kLeft = 64, kRight = 704, kTop = 40, kBottom = 352;
constexpr char kTrainingColour[] = "#1f6fb4";
constexpr char kHeldOutColour[] = "#c8431b";

struct Axis {
  double low = 0, high = 1;  // values at its ends
  double from = 0, to = 1;   // pixels at its ends
  double At(double value) const {
    return from + (to - from) * (value - low) / (high - low);
  }
  // Distance of ticks: 1, 2 or 5 times a power of ten, 3 to 8 of them.
  double Tick() const {
    const double power = std::pow(10, std::floor(std::log10(high - low)));
    const double spans = (high - low) / power;  // [1, 10)
    return power * (spans < 1.5 ? 0.2 : spans < 3.5 ? 0.5 : spans < 8 ? 1 : 2);
  }
  double FirstTick() const { return std::ceil(low / Tick()) * Tick(); }
};

// Both axes, wide enough for every point.
std::pair<Axis, Axis> AxesOf(absl::Span<const LossPoint> points) {
  Axis x{0, 1, kLeft, kRight}, y{1e300, -1e300, kBottom, kTop};
  for (const LossPoint& point : points) {
    x.high = std::max(x.high, static_cast<double>(point.step));
    for (const std::optional<double>& value : {point.loss, point.held_out}) {
      if (!value) continue;
      y.low = std::min(y.low, *value);
      y.high = std::max(y.high, *value);
    }
  }
  if (y.low > y.high) y.low = y.high = 0;
  const double margin = std::max(0.05 * (y.high - y.low), 0.01);
  y.low -= margin;
  y.high += margin;
  return {x, y};
}

std::string Text(double x, double y, absl::string_view anchor,
                 absl::string_view text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y,
      anchor, text);
}

std::string Line(double x1, double y1, double x2, double y2,
                 absl::string_view colour) {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
      x1, y1, x2, y2, colour);
}

std::string Grid(const Axis& x, const Axis& y) {
  std::string svg;
  for (double v = y.FirstTick(); v <= y.high; v += y.Tick()) {
    absl::StrAppend(
        &svg, Line(kLeft, y.At(v), kRight, y.At(v), "#dddddd"),
        Text(kLeft - 8, y.At(v) + 4, "end", absl::StrFormat("%.4g", v)));
  }
  for (double v = x.FirstTick(); v <= x.high; v += x.Tick()) {
    absl::StrAppend(
        &svg, Line(x.At(v), kBottom, x.At(v), kBottom + 5, "#444"),
        Text(x.At(v), kBottom + 20, "middle", absl::StrFormat("%.10g", v)));
  }
  return svg;
}

std::string Curve(absl::Span<const LossPoint> points, const Axis& x,
                  const Axis& y, std::optional<double> LossPoint::*loss,
                  absl::string_view colour) {
  std::string line;
  for (const LossPoint& point : points) {
    if (!(point.*loss)) continue;
    absl::StrAppendFormat(&line, "%.1f,%.1f ",
                          x.At(static_cast<double>(point.step)),
                          y.At(*(point.*loss)));
  }
  return absl::StrFormat(
      "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
      "points=\"%s\"/>\n",
      colour, line);
}

std::string Legend(double x, absl::string_view name, absl::string_view colour) {
  return absl::StrCat(Line(x, 20, x + 24, 20, colour),
                      Text(x + 32, 24, "start", name));
}

}  // namespace

std::string LossChart(absl::Span<const LossPoint> points) {
  const auto [x, y] = AxesOf(points);
  return absl::StrCat(
      absl::StrFormat("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                      "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
                      "font-size=\"12\">\n<title>Loss in nats per token"
                      "</title>\n<rect width=\"100%%\" height=\"100%%\" "
                      "fill=\"white\"/>\n",
                      kWidth, kHeight),
      Grid(x, y), Line(kLeft, kBottom, kRight, kBottom, "#444"),
      Text((kLeft + kRight) / 2, kBottom + 40, "middle", "step"),
      Text(kLeft, 24, "middle", "nats per token"),
      Legend(180, "training", kTrainingColour),
      Legend(300, "held-out", kHeldOutColour),
      Curve(points, x, y, &LossPoint::loss, kTrainingColour),
      Curve(points, x, y, &LossPoint::held_out, kHeldOutColour), "</svg>\n");
}

namespace {

std::string LogLine(const TrainProgress& p) {
  nlohmann::ordered_json json = {{"step", p.step}, {"steps", p.total_steps}};
  if (p.loss) json["loss"] = *p.loss;
  if (p.held_out) json["held_out"] = *p.held_out;
  if (p.loss) {
    json["learning_rate"] = p.learning_rate;
    json["gradient_norm"] = p.gradient_norm;
    json["tokens_per_second"] = p.tokens_per_second;
    json["seconds_left"] = p.seconds_left;
  }
  json["seconds"] = p.seconds;
  return json.dump() + "\n";
}

}  // namespace

TrainingLog::TrainingLog(const std::string& directory, bool resume)
    : log_path_(absl::StrCat(directory, "/", kTrainingLogFile)),
      chart_path_(absl::StrCat(directory, "/", kLossChartFile)),
      resume_(resume) {}

std::string TrainingLog::LinesBefore(int64_t step) {
  std::string kept, line;
  std::ifstream in(log_path_);
  while (std::getline(in, line)) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") ||
        !json["step"].is_number_integer()) {
      continue;  // the end of a line that a crash cut
    }
    LossPoint point{json["step"].get<int64_t>(), {}, {}};
    if (point.step >= step) continue;
    for (const auto& [name, loss] : {std::pair("loss", &point.loss),
                                     std::pair("held_out", &point.held_out)}) {
      if (json.contains(name) && json[name].is_number()) {
        *loss = json[name].get<double>();
      }
    }
    points_.push_back(point);
    absl::StrAppend(&kept, line, "\n");
  }
  return kept;
}

absl::Status TrainingLog::Add(const TrainProgress& progress) {
  if (!begun_) {
    TXL_RETURN_IF_ERROR(
        WriteTextFile(log_path_, resume_ ? LinesBefore(progress.step) : ""));
    begun_ = true;
  }
  points_.push_back({progress.step, progress.loss, progress.held_out});
  std::ofstream out(log_path_, std::ios::app);
  out << LogLine(progress);
  out.close();
  if (!out) {
    return absl::PermissionDeniedError(
        absl::StrCat(log_path_, ": cannot be written"));
  }
  return WriteTextFile(chart_path_, LossChart(points_));
}

}  // namespace txl
