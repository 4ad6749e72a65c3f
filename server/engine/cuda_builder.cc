#include "server/engine/cuda_builder.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/sampling_slots.h"
#include "model/cuda/step/cuda_sampling_step.h"
#include "model/sampling/sampling_params.h"
#include "model/step/model_step.h"
#include "server/engine/device_name.h"

namespace txl {
namespace {

// Bytes for all slots: what was asked for, or what the device has left once
// the weights, `shared` and the reserve are taken off.
int64_t SlotBytes(const Weights& weights, NumberFormat format, int64_t shared,
                  const StepRunnerOptions& options) {
  if (options.slot_bytes > 0) return options.slot_bytes;
  // Absorbed projections are as large as those that they replace; padding and
  // positional keys are what the reserve is for.
  const int64_t weight_bytes =
      weights.Bytes() / int64_t{sizeof(float)} * NumberBytes(format);
  const int64_t left = static_cast<int64_t>(cuda::CurrentDevice().free_bytes) -
                       weight_bytes - shared - kDeviceReserveBytes;
  return std::max<int64_t>(0, left);
}

}  // namespace

bool SamplesOnCudaDevice(const ModelConfig& config,
                         const StepRunnerOptions& options) {
  // What of a request takes room in a slot's record, at its largest.
  SamplingParams hardest;
  hardest.presence_penalty = 1;
  hardest.penalty_window = kMaxPenaltyWindow;
  for (size_t id = 0; id < kMaxLogitBiasEntries; ++id) {
    hardest.logit_bias[static_cast<int32_t>(id)] = 1;
  }
  hardest.allowed_token_ids.resize(kMaxAllowedTokens);
  return options.top_logprobs <= SamplingStep::kMostTopLogprobs &&
         cuda::SampledOnDevice(hardest, options.banned_ids, BinsOf(config),
                               cuda::SamplingLimits());
}

absl::Status CheckCudaOptions(const ModelConfig& config,
                              const StepRunnerOptions& options) {
  TXL_ASSIGN_OR_RETURN(const auto form, ParseForm(options.form));
  if (form == AttentionForm::kProjected) {
    return absl::InvalidArgumentError("form: the CUDA step is absorbed");
  }
  if (options.derived != "f32") {
    return absl::InvalidArgumentError(
        "derived: the CUDA step keeps no keys and values; "
        "memory says how it keeps stored rows");
  }
  if (options.products != "float") {
    return absl::InvalidArgumentError(
        "products: the CUDA step multiplies by floats");
  }
  if (!SamplesOnCudaDevice(config, options)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "step: the native CUDA step cannot sample from a vocabulary of ",
        config.cutoffs.size(), " clusters with up to ", options.banned_ids,
        " banned ids and ", options.top_logprobs,
        " alternatives; the torch step can"));
  }
  return absl::OkStatus();
}

int NativeCudaDevices() { return cuda::DeviceCount(); }

absl::StatusOr<BuiltStep> BuildCudaStep(const ModelConfig& config,
                                        const Weights& weights,
                                        const std::string& fingerprint,
                                        const StepRunnerOptions& options,
                                        int index) {
  TXL_RETURN_IF_ERROR(CheckCudaOptions(config, options));
  cuda::UseDevice(index);
  BuiltStep built;
  built.device = absl::StrCat("cuda:", index);
  built.form = "absorbed";
  built.weight_format = options.weights;
  CudaStepOptions cuda;
  cuda.device = index;
  TXL_ASSIGN_OR_RETURN(cuda.weights, ParseWeightFormat(options.weights));
  TXL_ASSIGN_OR_RETURN(cuda.memory, ParseRowFormat("memory", options.memory));
  cuda.spare_rows = options.spare_rows;
  cuda.max_rows = options.max_rows;
  cuda.overlapped_rows = options.overlapped_rows;
  cuda.fingerprint = fingerprint;
  CudaSamplingOptions sampling;
  sampling.kinds = options.kinds;
  const CudaSamplingBytes bytes = CudaSamplingStepBytes(config, cuda, sampling);
  StepRunnerOptions room = options;
  room.slot_bytes = SlotBytes(weights, cuda.weights, bytes.shared, options);
  // Sessions that wait for their users stay on the device: moving one there
  // takes longer than a step.
  TXL_ASSIGN_OR_RETURN(
      built.slots,
      SlotCount(bytes.slot, std::numeric_limits<int32_t>::max(), room));
  cuda.slots = built.slots;
  TXL_ASSIGN_OR_RETURN(built.sampling,
                       CreateCudaSamplingStep(config, weights, cuda, sampling));
  return built;
}

std::optional<int64_t> FreeDeviceBytes(int index) {
  cuda::UseDevice(index);
  return static_cast<int64_t>(cuda::CurrentDevice().free_bytes);
}

}  // namespace txl
