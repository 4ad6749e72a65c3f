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

void AddIdleShare(const StepTimes& times, json& line) {
  const std::optional<double> share = IdleShare(times);
  if (share.has_value()) line["device_idle_share"] = Rounded(*share);
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

json DeviceLine(const std::string& name, double copy_bytes_per_second,
                const std::optional<MachinePeaks>& peaks) {
  json line = {{"kind", "machine"}, {"name", name}};
  if (copy_bytes_per_second > 0) {
    line["copy_gigabytes_per_second"] = Rounded(copy_bytes_per_second / 1e9);
  }
  if (peaks.has_value()) {
    line["stated_gigabytes_per_second"] =
        Rounded(peaks->read_bytes_per_second / 1e9);
    line["stated_teraflops"] = Rounded(peaks->flops_per_second / 1e12);
  }
  return line;
}

json DecodeLine(const DecodeMeasurement& measured,
                const std::optional<MachinePeaks>& peaks) {
  const std::vector<double>& seconds = measured.times.seconds;
  const double step = Sum(seconds) / static_cast<double>(seconds.size());
  const double sessions = measured.sessions;
  json line = {
      {"kind", "decode"},
      {"sessions", measured.sessions},
      {"position", measured.position},
      {"steps", seconds.size()},
      {"tokens_per_second", Rounded(sessions / step)},
      {"step_milliseconds", Rounded(1e3 * step)},
      {"step_milliseconds_p50", Rounded(1e3 * Quantile(seconds, 0.5))},
      {"step_milliseconds_p99", Rounded(1e3 * Quantile(seconds, 0.99))},
      {"bytes_per_step", Whole(measured.costs.bytes())},
      {"flops_per_step", Whole(measured.costs.flops())},
      {"phases", CostsJson(measured.costs)}};
  AddIdleShare(measured.times, line);
  if (peaks.has_value()) {
    const double read_rate = peaks->ReadRate(measured.costs.bytes());
    const double least = PhasesAddedSeconds(
        measured.costs, {read_rate, peaks->flops_per_second});
    line["footprint_gigabytes_per_second"] = Rounded(read_rate / 1e9);
    line["roofline_tokens_per_second"] = Rounded(sessions / least);
    line["share_of_roofline"] = Rounded(least / step);
    line["share_of_bandwidth"] =
        Rounded(measured.costs.bytes() / step / read_rate);
    if (peaks->copy_bytes_per_second > 0) {
      line["share_of_copy"] =
          Rounded(measured.costs.bytes() / step / peaks->copy_bytes_per_second);
    }
  }
  return line;
}

json ScoreLine(const ScoreMeasurement& measured,
               const std::optional<MachinePeaks>& peaks) {
  const ScoreWork& work = measured.work;
  const std::vector<double>& seconds = measured.times.seconds;
  const double tokens = static_cast<double>(work.streams * work.segment_rows);
  const double round = Sum(seconds) / measured.rounds;
  json line = {
      {"kind", "score"},
      {"streams", work.streams},
      {"segment_rows", work.segment_rows},
      {"position", measured.position},
      {"rounds", measured.rounds},
      {"steps_of_a_round", measured.costs.size()},
      {"tokens_per_second", Rounded(tokens / round)},
      {"step_milliseconds_p50", Rounded(1e3 * Quantile(seconds, 0.5))},
      {"step_milliseconds_p99", Rounded(1e3 * Quantile(seconds, 0.99))}};
  AddIdleShare(measured.times, line);
  if (peaks.has_value()) {
    double least = 0;
    for (const StepCosts& costs : measured.costs) {
      least += PhasesAddedSeconds(
          costs, {peaks->ReadRate(costs.bytes()), peaks->flops_per_second});
    }
    line["roofline_tokens_per_second"] = Rounded(tokens / least);
    line["share_of_roofline"] = Rounded(least / round);
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
