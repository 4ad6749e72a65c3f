#pragma once

// The steps that the self-test is tried on: the native one of the CPU, or the
// CUDA one on the emulated device; each program has one of them.

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/cpu/native_weights.h"
#include "model/step/sampling_step.h"
#include "model/step/self_test.h"

namespace txl {

struct TriedFormat {
  const char* name;
  NativeFormats formats;

  SelfTestFormats bounds() const {
    return {formats.weights, formats.memory, formats.derived,
            formats.products == Products::kInteger ? NumberFormat::kInt8
                                                   : NumberFormat::kF32};
  }
};
inline void PrintTo(const TriedFormat& format, std::ostream* out) {
  *out << format.name;
}
// Those that the step has.
std::vector<TriedFormat> TriedFormats();

struct TriedLimits {
  int32_t slots = 4;
  int64_t max_rows = 9;
};

// Throws std::runtime_error where there is no such step.
std::unique_ptr<SamplingStep> MakeTriedStep(const ModelConfig& config,
                                            const Weights& weights,
                                            const TriedFormat& format,
                                            const TriedLimits& limits = {});

}  // namespace txl
