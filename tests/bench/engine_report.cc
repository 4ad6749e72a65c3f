#include "tests/bench/engine_report.h"

#include <numeric>

#include "tests/bench/process_facts.h"

namespace txl {
namespace {

using json = nlohmann::ordered_json;

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

int64_t Whole(double x) { return static_cast<int64_t>(x); }

json PhaseJson(const PhaseCost& cost) {
  return {{"bytes", Whole(cost.bytes)}, {"flops", Whole(cost.flops)}};
}

json CostsJson(const StepCosts& costs) {
  return {{"weights", PhaseJson(costs.weights)},
          {"softmax", PhaseJson(costs.softmax)},
          {"attention", PhaseJson(costs.attention)},
          {"distances", PhaseJson(costs.distances)}};
}

}  // namespace

json MachineLine(const MachinePeaks& peaks) {
  json footprints = json::array();
  for (const CurvePoint& point : peaks.by_footprint) {
    footprints.push_back(
        {{"bytes", Whole(point.x)},
         {"read_gigabytes_per_second", Rounded(point.y / 1e9)}});
  }
  return {
      {"kind", "machine"},
      {"cpu", CpuName()},
      {"threads", peaks.threads},
      {"vector_target", peaks.vector_target},
      {"read_gigabytes_per_second", Rounded(peaks.read_bytes_per_second / 1e9)},
      {"fma_gigaflops", Rounded(peaks.flops_per_second / 1e9)},
      {"by_footprint", std::move(footprints)}};
}

json DecodeLine(const DecodeMeasurement& measured,
                const std::optional<MachinePeaks>& peaks) {
  const double steps = static_cast<double>(measured.step_seconds.size());
  const double step = Sum(measured.step_seconds) / steps;
  const double sessions = measured.sessions;
  json line = {{"kind", "decode"},
               {"sessions", measured.sessions},
               {"position", measured.position},
               {"steps", measured.step_seconds.size()},
               {"tokens_per_second", Rounded(sessions / step)},
               {"step_milliseconds", Rounded(1e3 * step)},
               {"step_milliseconds_p50",
                Rounded(1e3 * Quantile(measured.step_seconds, 0.5))},
               {"step_milliseconds_p99",
                Rounded(1e3 * Quantile(measured.step_seconds, 0.99))},
               {"bytes_per_step", Whole(measured.costs.bytes())},
               {"flops_per_step", Whole(measured.costs.flops())},
               {"phases", CostsJson(measured.costs)}};
  if (peaks.has_value()) {
    const double read_rate = peaks->ReadRate(measured.costs.bytes());
    const double least = PhasesAddedSeconds(
        measured.costs, {read_rate, peaks->flops_per_second});
    line["footprint_gigabytes_per_second"] = Rounded(read_rate / 1e9);
    line["roofline_tokens_per_second"] = Rounded(sessions / least);
    line["share_of_roofline"] = Rounded(least / step);
    line["share_of_bandwidth"] =
        Rounded(measured.costs.bytes() / step / read_rate);
  }
  return line;
}

json PromptLine(const PromptMeasurement& measured,
                const std::optional<MachinePeaks>& peaks) {
  const double seconds = Sum(measured.segment_seconds);
  json line = {{"kind", "prompt"},
               {"position", measured.position},
               {"rows", measured.rows},
               {"segment_rows", measured.segment_rows},
               {"rows_per_second",
                Rounded(static_cast<double>(measured.rows) / seconds)},
               {"segment_milliseconds_p50",
                Rounded(1e3 * Quantile(measured.segment_seconds, 0.5))},
               {"gigaflops", Rounded(measured.flops / seconds / 1e9)}};
  if (peaks.has_value()) {
    line["share_of_fma_peak"] =
        Rounded(measured.flops / seconds / peaks->flops_per_second);
  }
  return line;
}

}  // namespace txl
