#pragma once

// How the engine is to run a model.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "model/sampling/token_kinds.h"

namespace txl {

struct StepRunnerOptions {
  std::string device = "auto";  // see ResolveDevice
  // "native": own kernels, model/cpu or model/cuda; "torch": model/torch, any
  // device, plain; "auto": native where that takes the options and a self-test
  // at load is content with it (load_step_runner.h), else torch.
  std::string step = "auto";
  // Attention of the native step: "projected", "absorbed", or "auto", the one
  // that its cost model (model/cpu/attention_form.h) finds cheaper.
  std::string form = "auto";
  // The native step alone has threads, >= 1, and says how numbers are kept:
  // "f32", "bf16", "f16", "int8": weights (or "int4"); stored rows; keys,
  // values and positional keys derived from them. Products of rows with int8
  // and int4 weights are "float" or, with rows rounded to 8 bits, "int8".
  int32_t threads = 1;
  std::string weights = "f32";
  std::string memory = "f32";
  std::string derived = "f32";
  std::string products = "float";
  // The CPU's instruction set: a name of model/cpu/vector_target.h, or "auto",
  // the best one.
  std::string vector_target = "auto";
  // In steps of at most so many rows, kernels of the native CUDA step begin
  // before the ones before them have ended, on H100 and later. The same bits.
  int64_t overlapped_rows = 64;
  // Slots: as many as fit slot_bytes, unless `slots` says how many; on the CPU
  // and with LibTorch at most max_rows. Their memory is taken at start; the
  // CPU's native step only reserves it, and takes pages as they are written.
  // slot_bytes 0: half of what the host has left (host_memory.h), or a device
  // with LibTorch; with the native CUDA step what the device has left but a
  // reserve (cuda_builder.h).
  int32_t slots = 0;
  int64_t slot_bytes = 0;
  int64_t spare_rows = 64;  // >= 8
  int32_t max_rows = 256;   // >= 1, of one plan
  // Most that a request may ask for: a device samples itself only where it can
  // serve all of it.
  int64_t banned_ids = 64;    // stop and end tokens
  int64_t top_logprobs = 20;  // alternatives of a token
  // The model's kinds of tokens, which LoadStepRunner sets; null: it has none.
  std::shared_ptr<const TokenKinds> kinds = nullptr;
};

// Presets of the CPU's number formats: what --quality sets.
//
//   exact     float32 everywhere
//   balanced  --weights int8 --derived f16
//   fast      --weights int8 --products int8 --memory int8 --derived int8

inline constexpr char kExactQuality[] = "exact";
// By accuracy, the best first.
std::vector<std::string> QualityNames();

// Sets what the preset names, but for settings that were given: these win, and
// products become integer ones only where weights are int8 or int4 in the end.
// REQUIRES: quality is one of QualityNames().
void ApplyQuality(const std::string& quality,
                  absl::FunctionRef<bool(absl::string_view)> is_given,
                  StepRunnerOptions& options);

// "weights int8, products float, memory f32, derived f16"
std::string FormatsText(const StepRunnerOptions& options);

}  // namespace txl
