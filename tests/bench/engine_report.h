#pragma once

// What the whole-step benchmarks print: pure functions from measurements to
// JSON. Units are in the names; shares are of 1.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/machine_peaks.h"
#include "tests/bench/session_driver.h"
#include "tests/bench/step_costs.h"

namespace txl {

nlohmann::ordered_json MachineLine(const MachinePeaks& peaks);
// What is known of a device: its name, what it copies per second (0: not
// measured) and the peaks that steps are held against.
nlohmann::ordered_json DeviceLine(const std::string& name,
                                  double copy_bytes_per_second,
                                  const std::optional<MachinePeaks>& peaks);

struct DecodeMeasurement {
  int sessions = 1;
  int64_t position = 0;  // of the first measured token
  StepTimes times;
  StepCosts costs;
};

// Throughput and step times; with peaks also what the machine allows for these
// costs (phases added, at the read bandwidth of this footprint), the share of
// it that was reached, and the share of the bandwidth: minimum bytes over time
// (and of a device's copies, where they were measured). Where the steps say how
// long the device worked, the share of the time in which it stood idle.
nlohmann::ordered_json DecodeLine(const DecodeMeasurement& measured,
                                  const std::optional<MachinePeaks>& peaks);

struct ScoreMeasurement {
  ScoreWork work;
  int64_t position = 0;          // of the first measured token
  int rounds = 0;                // each scores a segment of every stream
  StepTimes times;               // of the steps of all rounds
  std::vector<StepCosts> costs;  // of each step of a round
};

nlohmann::ordered_json ScoreLine(const ScoreMeasurement& measured,
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
