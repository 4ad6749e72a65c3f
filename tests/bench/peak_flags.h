#pragma once

// What a benchmark's steps are held against: a CPU is measured, a CUDA device
// has the rates that its maker or the flags state.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/runner_options.h"
#include "tests/bench/machine_peaks.h"
#include "tests/bench/step_costs.h"

namespace txl {

struct PeakFlags {
  bool measure = true;  // what can be: a CPU's rates, a device's copies
  // Of a CUDA device; 0: as StatedRates.
  double device_bandwidth = 0;
  double device_flops = 0;
};

// --peaks, --device-bandwidth, --device-flops. `flags` outlives the parsing.
void AddPeakFlags(CLI::App& app, PeakFlags& flags);

// By the name that CUDA has for a device: bandwidth of its memory, and four
// fifths of its data sheet's rate of dense bf16 products, which is what large
// ones reach at the clock that its power allows (H100, H200: 790 TFLOP/s).
std::optional<MachineRates> StatedRates(absl::string_view device_name);

// Rates of the flags, else those stated; absent unless both are known.
std::optional<MachinePeaks> DevicePeaks(const PeakFlags& flags,
                                        absl::string_view device_name);

struct FoundPeaks {
  std::optional<MachinePeaks> peaks;
  nlohmann::ordered_json line;  // null: nothing is known
};

// Of the place that the options choose (ChooseStepPlace, whose errors come
// back). Call it before a model takes a device's memory: copies need 4 GiB.
absl::StatusOr<FoundPeaks> FindPeaks(const PeakFlags& flags,
                                     const StepRunnerOptions& options);

// The same, said in a line (but what is too long for one) and kept in the
// document as "machine".
absl::StatusOr<std::optional<MachinePeaks>> ReportPeaks(
    const PeakFlags& flags, const StepRunnerOptions& options,
    nlohmann::ordered_json& document);

}  // namespace txl
