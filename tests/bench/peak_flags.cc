#include "tests/bench/peak_flags.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/match.h"
#include "model/base/status_macros.h"
#include "server/engine/host_needs.h"
#include "tests/bench/device_probe.h"
#include "tests/bench/engine_report.h"

namespace txl {
namespace {

// Index of the CUDA device that steps run on; absent: the CPU.
std::optional<int> CudaDevice(const StepPlace& place) {
  if (place.native_cuda.has_value()) return place.native_cuda;
  if (!place.weights.is_cuda()) return std::nullopt;
  return std::max<int>(0, place.weights.index());  // -1: the usual one
}

FoundPeaks MeasureCpu(int32_t threads) {
  PeakOptions options = {.threads = threads};
  FoundPeaks found;
  found.peaks = MeasurePeaks(options);
  found.line = MachineLine(*found.peaks);
  return found;
}

}  // namespace

void AddPeakFlags(CLI::App& app, PeakFlags& flags) {
  app.add_flag("--peaks,!--no-peaks", flags.measure,
               "measure the machine first [on]");
  app.add_option("--device-bandwidth", flags.device_bandwidth,
                 "bytes/s of a CUDA device's memory; 0: by its name")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--device-flops", flags.device_flops,
                 "FLOP/s of a CUDA device's products; 0: by its name")
      ->check(CLI::NonNegativeNumber);
}

std::optional<MachineRates> StatedRates(absl::string_view device_name) {
  struct Stated {
    absl::string_view name;
    double terabytes;
    double teraflops;
  };
  // More specific names first.
  constexpr Stated kStated[] = {
      {"H200", 4.8, 790},
      {"H100 NVL", 3.9, 668},
      {"H100 PCIe", 2.0, 605},
      {"H100", 3.35, 790},
      {"A100-SXM4-40GB", 1.555, 250},
      {"A100-PCIE-40GB", 1.555, 250},
      {"A100", 2.0, 250},
  };
  for (const Stated& stated : kStated) {
    if (absl::StrContains(device_name, stated.name)) {
      return MachineRates{stated.terabytes * 1e12, stated.teraflops * 1e12};
    }
  }
  return std::nullopt;
}

std::optional<MachinePeaks> DevicePeaks(const PeakFlags& flags,
                                        absl::string_view device_name) {
  MachineRates rates = StatedRates(device_name).value_or(MachineRates());
  if (flags.device_bandwidth > 0) {
    rates.bytes_per_second = flags.device_bandwidth;
  }
  if (flags.device_flops > 0) rates.flops_per_second = flags.device_flops;
  if (rates.bytes_per_second <= 0 || rates.flops_per_second <= 0) {
    return std::nullopt;
  }
  MachinePeaks peaks;
  peaks.read_bytes_per_second = rates.bytes_per_second;
  peaks.flops_per_second = rates.flops_per_second;
  return peaks;
}

absl::StatusOr<FoundPeaks> FindPeaks(const PeakFlags& flags,
                                     const StepRunnerOptions& options) {
  TXL_ASSIGN_OR_RETURN(const StepPlace place, ChooseStepPlace(options));
  const std::optional<int> device = CudaDevice(place);
  if (!device.has_value()) {
    return flags.measure ? MeasureCpu(options.threads) : FoundPeaks();
  }
  TXL_ASSIGN_OR_RETURN(const DeviceProbe probe,
                       ProbeDevice(*device, flags.measure));
  FoundPeaks found;
  found.peaks = DevicePeaks(flags, probe.name);
  if (found.peaks.has_value()) {
    found.peaks->copy_bytes_per_second = probe.copy_bytes_per_second;
  }
  found.line = DeviceLine(probe.name, probe.copy_bytes_per_second, found.peaks);
  return found;
}

absl::StatusOr<std::optional<MachinePeaks>> ReportPeaks(
    const PeakFlags& flags, const StepRunnerOptions& options,
    nlohmann::ordered_json& document) {
  TXL_ASSIGN_OR_RETURN(FoundPeaks found, FindPeaks(flags, options));
  if (!found.line.is_null()) {
    document["machine"] = found.line;
    found.line.erase("by_footprint");
    std::cout << found.line.dump() << std::endl;
  }
  return found.peaks;
}

}  // namespace txl
