#pragma once

// A result as one HTML page that needs nothing from elsewhere: figures and
// pictures.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/bench/result/svg_chart.h"

namespace txl::bench {

// `result`: what --out writes, of one run or of several. Errors:
// InvalidArgument for anything else.
absl::StatusOr<std::string> MakePage(const nlohmann::ordered_json& result);

// The pictures, from a run with histograms and series:
// time over the share of turns (or tokens) that took no longer,
Chart LatencyChart(const nlohmann::ordered_json& run);
// tokens/s and turns over the run's time, with its stalls,
Chart ThroughputChart(const nlohmann::ordered_json& run);
Chart TurnsChart(const nlohmann::ordered_json& run);
// and from several runs latency over the rate.
Chart RateChart(const nlohmann::ordered_json& sweep);

}  // namespace txl::bench
