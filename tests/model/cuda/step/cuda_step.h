#pragma once

// One step of the serving engine on a CUDA device, in absorbed form
// (docs/design/step.md). For every number of rows there are two
// graphs, each launched as one: from the tokens through all layers, and from
// the rows that are wanted to their log-probabilities.
//
// Bits. The same sequence of calls gives the same bits on the same kind of
// device; moving stored state is bit-exact. How many rows run in a step decides
// how its products and sums are cut, and so the last bits of its numbers.
//
// The same source runs on the emulated device (device/runtime.h), for tests.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "model/config/model_config.h"
#include "model/cuda/step/cuda_step_options.h"
#include "model/step/model_step.h"

namespace txl {

// Errors as cuda::CheckOptions. `weights` is not kept. It and the step throw
// cuda::DeviceOutOfMemory, a std::bad_alloc, and cuda::DeviceError
// (model/cuda/device/runtime.h).
absl::StatusOr<std::unique_ptr<ModelStep>> CreateCudaStep(
    const ModelConfig& config, const Weights& weights,
    const CudaStepOptions& options);

// Bytes of one slot before anything is allocated.
int64_t CudaStepSlotBytes(const ModelConfig& config, int64_t spare_rows,
                          NumberFormat memory);

}  // namespace txl
