#include <stdexcept>

#include "model/cuda/step/cuda_sampling_step.h"
#include "tests/server/engine/tried_step.h"

namespace txl {

std::vector<TriedFormat> TriedFormats() {
  using enum NumberFormat;
  const auto both = [](const char* name, NumberFormat format) {
    TriedFormat tried = {name, {}};
    tried.formats.weights = format;
    tried.formats.memory = format;
    return tried;
  };
  return {both("f32", kF32), both("f16", kF16), both("bf16", kBF16)};
}

std::unique_ptr<SamplingStep> MakeTriedStep(const ModelConfig& config,
                                            const Weights& weights,
                                            const TriedFormat& format,
                                            const TriedLimits& limits) {
  CudaStepOptions options;
  options.slots = limits.slots;
  options.spare_rows = 16;
  options.max_rows = limits.max_rows;
  options.weights = format.formats.weights;
  options.memory = format.formats.memory;
  auto step = CreateCudaSamplingStep(config, weights, options);
  if (!step.ok()) throw std::runtime_error(step.status().ToString());
  return *std::move(step);
}

}  // namespace txl
