#include <stdexcept>

#include "model/cpu/native_step.h"
#include "model/step/model_step.h"
#include "model/step/sampling_on_host.h"
#include "tests/server/engine/tried_step.h"

namespace txl {

std::vector<TriedFormat> TriedFormats() {
  using enum NumberFormat;
  using enum AttentionForm;
  using enum Products;
  return {{"f32", {kF32, kFloat, kF32, kF32, kProjected}},
          {"f32_absorbed", {kF32, kFloat, kF32, kF32, kAbsorbed}},
          {"f16", {kF16, kFloat, kF16, kF16, kProjected}},
          {"f16_rows", {kF32, kFloat, kF16, kF32, kAbsorbed}},
          {"bf16", {kBF16, kFloat, kBF16, kBF16, kProjected}},
          {"int8", {kInt8, kFloat, kF32, kF32, kProjected}},
          {"int8_f16_rows", {kInt8, kFloat, kF16, kF16, kProjected}},
          {"int8_whole", {kInt8, kInteger, kInt8, kInt8, kProjected}},
          {"int8_whole_absorbed", {kInt8, kInteger, kInt8, kInt8, kAbsorbed}},
          {"int4_absorbed", {kInt4, kFloat, kF32, kF32, kAbsorbed}},
          {"int4_whole", {kInt4, kInteger, kInt8, kInt8, kProjected}}};
}

std::unique_ptr<SamplingStep> MakeTriedStep(const ModelConfig& config,
                                            const Weights& weights,
                                            const TriedFormat& format,
                                            const TriedLimits& limits) {
  NativeStepOptions options;
  options.slots = limits.slots;
  options.spare_rows = 16;
  options.max_rows = limits.max_rows;
  options.formats = format.formats;
  auto step = CreateNativeStep(config, weights, options);
  if (!step.ok()) throw std::runtime_error(step.status().ToString());
  return SampleOnHost(*std::move(step), BinsOf(config), limits.slots);
}

}  // namespace txl
