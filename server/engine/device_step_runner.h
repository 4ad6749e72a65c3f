#pragma once

// The StepRunner on a ModelStep: one device thread that executes everything in
// the order of the calls. LibTorch's exceptions end here. This header knows no
// tensor type.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/step_runner.h"

namespace txl {

struct ModelConfig;
struct ModelDirectory;
struct Weights;

struct StepRunnerOptions {
  std::string device = "auto";  // see ResolveDevice
  // "native": own kernels, model/cpu or model/cuda; "torch": model/torch, any
  // device, plain and the oracle of the native ones; "auto": native on the CPU,
  // torch on CUDA devices.
  std::string step = "auto";
  // Attention of the native step: "projected", "absorbed", or "auto", the one
  // that its cost model (model/cpu/attention_form.h) finds cheaper.
  std::string form = "auto";
  // Of the native step: threads >= 1, and how numbers are kept: "f32", "bf16",
  // "f16" (weights also "int8"): weights; stored rows; keys, values and
  // positional keys derived from them.
  int32_t threads = 1;
  std::string weights = "f32";
  std::string memory = "f32";
  std::string derived = "f32";
  // Slots: as many as fit slot_bytes, unless `slots` says how many; on the CPU
  // and with LibTorch at most max_rows. Their memory is taken at start.
  // slot_bytes 0: 1 GiB; with the native CUDA step what the device has left
  // but a reserve (cuda_builder.h).
  int32_t slots = 0;
  int64_t slot_bytes = 0;
  int64_t spare_rows = 64;  // >= 8
  int32_t max_rows = 256;   // >= 1, of one plan
};

// Loads the directory's weights as float32 onto the device. Errors:
// InvalidArgument or FailedPrecondition naming the option or file;
// ResourceExhausted when memory runs out or not even one slot fits slot_bytes.
absl::StatusOr<std::unique_ptr<StepRunner>> LoadStepRunner(
    const ModelDirectory& directory, const StepRunnerOptions& options);

// The same on weights in memory, on the device and in the dtype that they
// have; options.device is not looked at.
absl::StatusOr<std::unique_ptr<StepRunner>> CreateStepRunner(
    const ModelConfig& config, const Weights& weights,
    const std::string& fingerprint, const StepRunnerOptions& options);

}  // namespace txl
