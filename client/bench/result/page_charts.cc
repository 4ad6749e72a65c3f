// The pictures of a page.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/bench/result/page.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBlue[] = "#4477aa";
constexpr char kRed[] = "#cc4455";
constexpr char kGreen[] = "#228833";
constexpr char kYellow[] = "#bb9911";
constexpr double kMs = 1e3;

// Where the share q of the slowest begins, on a scale of nines: 0.9 is at 1,
// 0.99 at 2.
double Nines(double q) { return -std::log10(1 - q); }

// Milliseconds over nines. The last bucket is drawn where its middle is.
Line LatencyLine(const Json& run, const char* histogram, const char* name,
                 const char* color) {
  Line line{name, color, {}, false};
  double total = 0;
  const Json& buckets = run.at("histograms").at(histogram);
  for (const Json& bucket : buckets) total += bucket.at(1).get<double>();
  double seen = 0;
  for (const Json& bucket : buckets) {
    const double count = bucket.at(1).get<double>();
    const double ms = kMs * bucket.at(0).get<double>();
    if (line.points.empty()) line.points.emplace_back(0, ms);
    seen += count;
    const double q = seen < total ? seen / total : 1 - 0.5 / total;
    line.points.emplace_back(Nines(q), ms);
  }
  return line;
}

Line SeriesLine(const Json& run, const char* field, const char* name,
                const char* color, bool per_second) {
  Line line{name, color, {}, false};
  for (const Json& part : run.at("series")) {
    const double seconds = part.at("seconds").get<double>();
    const double value = part.at(field).get<double>();
    if (seconds <= 0) continue;
    line.points.emplace_back(part.at("start").get<double>() + seconds / 2,
                             per_second ? value / seconds : value);
  }
  return line;
}

Chart OverTime(const Json& run, const char* title, const char* unit) {
  Chart chart;
  chart.title = title;
  chart.x.title = "seconds since the start";
  chart.y.title = unit;
  if (const double warmup = run.at("warmup_seconds").get<double>();
      warmup > 0) {
    chart.guides.push_back({Guide::Kind::kVertical, warmup, 0, "measured"});
  }
  for (const Json& stall : run.at("stalls")) {
    const double start = stall.at("start").get<double>();
    const double seconds = stall.at("seconds").get<double>();
    chart.guides.push_back({Guide::Kind::kBand, start, start + seconds,
                            absl::StrFormat("%.2f s stall", seconds)});
  }
  return chart;
}

}  // namespace

Chart LatencyChart(const Json& run) {
  Chart chart;
  chart.title = "Latency distribution";
  chart.x.title = "share that took no longer";
  chart.x.low = 0;
  for (const auto& [q, label] : {std::pair{0.0, "0"},
                                 {0.5, "50 %"},
                                 {0.9, "90 %"},
                                 {0.99, "99 %"},
                                 {0.999, "99.9 %"},
                                 {0.9999, "99.99 %"},
                                 {0.99999, "99.999 %"}}) {
    chart.x.ticks.push_back({Nines(q), label});
  }
  chart.y.title = "ms";
  chart.y.logarithmic = true;
  chart.lines = {
      LatencyLine(run, "end_to_end", "end to end", kGreen),
      LatencyLine(run, "time_to_first_token", "time to first token", kBlue),
      LatencyLine(run, "inter_token", "inter-token", kRed)};
  return chart;
}

Chart ThroughputChart(const Json& run) {
  Chart chart = OverTime(run, "Throughput", "tokens/s");
  chart.lines = {SeriesLine(run, "tokens", "tokens/s", kBlue, true)};
  return chart;
}

Chart TurnsChart(const Json& run) {
  Chart chart = OverTime(run, "Requests", "requests/s, or requests");
  chart.lines = {
      SeriesLine(run, "due", "due/s", kYellow, true),
      SeriesLine(run, "ended", "ended well/s", kGreen, true),
      SeriesLine(run, "failed", "failed/s", kRed, true),
      SeriesLine(run, "running", "waiting or running", kBlue, false)};
  return chart;
}

Chart RateChart(const Json& sweep) {
  Chart chart;
  chart.title = "Rate against latency";
  chart.x.title = "requests due per second";
  chart.x.logarithmic = true;
  chart.y.title = "ms";
  chart.y.logarithmic = true;
  const auto line = [&](const char* field, const char* figure, const char* name,
                        const char* color) {
    Line line{name, color, {}, true};
    for (const Json& run : sweep.at("runs")) {
      line.points.emplace_back(run.at("rate").get<double>(),
                               kMs * run.at(field).at(figure).get<double>());
    }
    std::sort(line.points.begin(), line.points.end());
    chart.lines.push_back(std::move(line));
  };
  line("time_to_first_token_seconds", "p50", "first token p50", kBlue);
  line("time_to_first_token_seconds", "p99", "first token p99", kYellow);
  line("inter_token_seconds", "p99", "inter-token p99", kRed);
  line("end_to_end_seconds", "p99", "end to end p99", kGreen);
  const Json& first = sweep.at("runs").at(0);
  if (first.contains("goodput")) {
    for (const auto& [name, limit] :
         first.at("goodput").at("limits_seconds").items()) {
      chart.guides.push_back({Guide::Kind::kHorizontal,
                              kMs * limit.get<double>(), 0,
                              "limit of " + name});
    }
  }
  if (sweep.contains("capacity")) {
    const double good = sweep.at("capacity").at("rate").get<double>();
    if (good > 0) {
      chart.guides.push_back({Guide::Kind::kVertical, good, 0, "capacity"});
    }
  }
  return chart;
}

}  // namespace txl::bench
