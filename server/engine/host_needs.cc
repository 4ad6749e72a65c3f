#include "server/engine/host_needs.h"

#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/config/model_config.h"
#include "model/cpu/int4_panel.h"
#include "model/cpu/native_step.h"
#include "model/torch/torch_step.h"
#include "server/engine/cuda_builder.h"
#include "server/engine/device_name.h"
#include "server/engine/step_builder.h"

namespace txl {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// A row's inputs and outputs in every part of a layer, and its logits.
int64_t RowBytes(const ModelConfig& config) {
  return kFloatBytes * (8 * config.d_model + 4 * config.n_head * config.d_head +
                        config.d_inner + config.vocab_size);
}

int64_t WeightBytes(const ModelConfig& config, NumberFormat format) {
  // Always in float32, beside what has the format.
  const int64_t beats = config.beat_rows() * config.d_model;
  const int64_t all = RequiredParameters(config) - beats;
  if (format != NumberFormat::kInt4) {
    return NumberBytes(format) * all + kFloatBytes * beats;
  }
  int64_t words = 0;
  for (int64_t bin = 0; bin < config.n_bins(); ++bin) {
    words += config.bin_size(bin) * config.bin_width(bin);
  }
  if (!config.tie_weight) words *= 2;
  return kFloatBytes * beats + words * NumberBytes(BinFormat(format)) +
         (all - words) * kInt4GroupBytes / (kInt4Group * kPanel);
}

}  // namespace

absl::StatusOr<HostNeeds> HostNeedsOf(const ModelConfig& config,
                                      const StepRunnerOptions& options) {
  TXL_RETURN_IF_ERROR(CheckStepOptions(options));
  TXL_ASSIGN_OR_RETURN(const StepPlace place, ChooseStepPlace(options));
  HostNeeds needs = {.step = options.max_rows * RowBytes(config)};
  if (place.native_cuda.has_value() || !place.weights.is_cpu()) return needs;
  needs.most_slots = options.max_rows;
  if (options.step == "torch") {
    needs.weights = kFloatBytes * RequiredParameters(config);
    needs.bytes_per_slot =
        TorchSlotBytes(config, options.spare_rows, kFloatBytes);
    return needs;
  }
  TXL_ASSIGN_OR_RETURN(const NativeFormats formats, ParseFormats(options));
  needs.weights = WeightBytes(config, formats.weights);
  needs.bytes_per_slot =
      NativeStepSlotBytes(config, options.spare_rows, formats);
  return needs;
}

absl::StatusOr<StepPlace> ChooseStepPlace(const StepRunnerOptions& options) {
  return ChooseStepPlaceOf(options, NativeCudaDevices());
}

absl::StatusOr<StepPlace> ChooseStepPlaceOf(const StepRunnerOptions& options,
                                            int devices) {
  StepPlace place;
  const bool native =
      options.step == "native" || (options.step == "auto" && devices > 0);
  if (!native) {
    TXL_ASSIGN_OR_RETURN(place.weights, ResolveDevice(options.device));
    return place;
  }
  TXL_ASSIGN_OR_RETURN(
      const c10::Device device,
      ResolveDeviceOf(options.device, devices, "the native step"));
  if (device.is_cuda()) place.native_cuda = device.index();
  return place;
}

}  // namespace txl
