#pragma once

// One step of the serving engine on the CPU without LibTorch: packed weights,
// attention in either form, own threads (docs/design/step.md).
//
// Bits. A row's numbers depend on its session's tokens, the weights and the
// instruction set alone: not on the other rows of a step, on the number of
// threads, on how the tokens were cut into calls and segments, nor on whether
// the state was moved or rebuilt in between.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/config/model_config.h"
#include "model/cpu/native_weights.h"
#include "model/step/model_step.h"

namespace txl {

struct Weights;

struct NativeStepOptions {
  int64_t slots = 1;        // >= 1, allocated at Create
  int64_t spare_rows = 64;  // at least; S >= 8
  int64_t max_rows = 256;   // of one Run, >= 1
  int threads = 1;          // >= 1
  NativeFormats formats;
  std::string fingerprint;  // for state images
};

// InvalidArgument names the option that is out of range, or the weights when
// they are not float32 on the CPU. `weights` is not kept.
absl::StatusOr<std::unique_ptr<ModelStep>> CreateNativeStep(
    const ModelConfig& config, const Weights& weights,
    const NativeStepOptions& options);

// Bytes of one slot before anything is allocated.
int64_t NativeStepSlotBytes(const ModelConfig& config, int64_t spare_rows,
                            const NativeFormats& formats);

}  // namespace txl
