#pragma once

// What the whole-step benchmarks print: pure functions from measurements to
// JSON. Units are in the names; shares are of 1.

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tests/bench/machine_peaks.h"
#include "tests/bench/step_costs.h"

namespace txl {

nlohmann::ordered_json MachineLine(const MachinePeaks& peaks);

struct DecodeMeasurement {
  int sessions = 1;
  int64_t position = 0;  // of the first measured token
  std::vector<double> step_seconds;
  StepCosts costs;
};

// Throughput and step times; with peaks also what the machine allows for these
// costs (phases added, at the read bandwidth of this footprint), the share of
// it that was reached, and the share of the bandwidth: minimum bytes over time.
nlohmann::ordered_json DecodeLine(const DecodeMeasurement& measured,
                                  const std::optional<MachinePeaks>& peaks);

struct PromptMeasurement {
  int64_t position = 0;  // of the first row
  int64_t rows = 0;
  int64_t segment_rows = 0;
  std::vector<double> segment_seconds;
  double flops = 0;  // of all rows
};

nlohmann::ordered_json PromptLine(const PromptMeasurement& measured,
                                  const std::optional<MachinePeaks>& peaks);

}  // namespace txl
