// A CUDA device whose kernels draw the second best token: the emulated one with
// a mistake. Taken before the functions of the library.

#include <algorithm>

#include "server/engine/cuda_builder.h"
#include "server/engine/device_name.h"
#include "tests/model/step/faulty_step.h"
#include "tests/server/engine/tried_step.h"

namespace txl {

int NativeCudaDevices() { return 1; }

std::optional<int64_t> FreeDeviceBytes(int) { return std::nullopt; }

bool SamplesOnCudaDevice(const ModelConfig&, const StepRunnerOptions&) {
  return true;
}

absl::Status CheckCudaOptions(const ModelConfig&, const StepRunnerOptions&) {
  return absl::OkStatus();
}

absl::StatusOr<BuiltStep> BuildCudaStep(const ModelConfig& config,
                                        const Weights& weights,
                                        const std::string&,
                                        const StepRunnerOptions& options, int) {
  const std::vector<TriedFormat> formats = TriedFormats();
  const auto format = std::find_if(
      formats.begin(), formats.end(),
      [&](const TriedFormat& one) { return one.name == options.weights; });
  if (format == formats.end()) return absl::InvalidArgumentError("weights");
  BuiltStep built;
  built.device = "cuda:0";
  built.form = "absorbed";
  built.weight_format = options.weights;
  built.slots = options.slots;
  built.sampling =
      MakeFaultyStep(MakeTriedStep(config, weights, *format,
                                   {options.slots, options.max_rows}),
                     StepFault::kSecondBest);
  return built;
}

}  // namespace txl
