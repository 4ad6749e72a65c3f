#pragma once

// What every step on a CUDA device is made with.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "model/base/number_format.h"
#include "model/config/model_config.h"

namespace txl {

struct Weights;

struct CudaStepOptions {
  int device = 0;           // index
  int64_t slots = 1;        // >= 1, allocated at Create
  int64_t spare_rows = 64;  // at least; S >= 8
  int64_t max_rows = 256;   // of one Run, 1..kMostCudaRows
  // How numbers are stored: weights, and activations where they meet weights;
  // stored rows. Not kInt8 or kInt4. Sums are float32.
  NumberFormat weights = NumberFormat::kF32;
  NumberFormat memory = NumberFormat::kF32;
  // In steps of at most so many rows, kernels begin before the ones before
  // them have ended (device/runtime.h, Stream). The same bits.
  int64_t overlapped_rows = 64;
  std::string fingerprint;  // for state images
};

inline constexpr int64_t kMostCudaRows = 4096;

namespace cuda {

// InvalidArgument names the option that is out of range, or the weights when
// they are not float32 on the CPU.
absl::Status CheckOptions(const ModelConfig& config, const Weights& weights,
                          const CudaStepOptions& options);

}  // namespace cuda
}  // namespace txl
