#pragma once

// One step of the serving engine on a CUDA device, in absorbed form
// (docs/ARCHITECTURE.md, "One step"). For every number of rows there are two
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
#include <string>

#include "absl/status/statusor.h"
#include "model/config/model_config.h"
#include "model/cpu/panel_product.h"
#include "model/step/model_step.h"

namespace txl {

struct Weights;

struct CudaStepOptions {
  int device = 0;           // index
  int64_t slots = 1;        // >= 1, allocated at Create
  int64_t spare_rows = 64;  // at least; S >= 8
  int64_t max_rows = 256;   // of one Run, 1..kMostCudaRows
  // How numbers are stored: weights, and activations where they meet weights;
  // stored rows. Not kInt8. Sums are float32.
  NumberFormat weights = NumberFormat::kF32;
  NumberFormat memory = NumberFormat::kF32;
  std::string fingerprint;  // for state images
};

inline constexpr int64_t kMostCudaRows = 4096;

// InvalidArgument names the option that is out of range, or the weights when
// they are not float32 on the CPU. `weights` is not kept. It and the step throw
// cuda::DeviceOutOfMemory, a std::bad_alloc, and cuda::DeviceError
// (model/cuda/device/runtime.h).
absl::StatusOr<std::unique_ptr<ModelStep>> CreateCudaStep(
    const ModelConfig& config, const Weights& weights,
    const CudaStepOptions& options);

// Bytes of one slot before anything is allocated.
int64_t CudaStepSlotBytes(const ModelConfig& config, int64_t spare_rows,
                          NumberFormat memory);

}  // namespace txl
