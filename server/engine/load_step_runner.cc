#include "server/engine/load_step_runner.h"

#include <optional>
#include <utility>

#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/weights.h"
#include "model/step/sampling_on_host.h"
#include "model/step/vocabulary_bins.h"
#include "server/engine/cuda_builder.h"
#include "server/engine/device_errors.h"
#include "server/engine/sampling_step_runner.h"
#include "server/engine/step_builder.h"
#include "server/engine/step_place.h"

namespace txl {
namespace {

// Two steps: the next one is queued while the scheduler reads the last.
constexpr int32_t kDepth = 2;
static_assert(kDepth <= SamplingStep::kDepth);

// `step`: what was built, or was made of it.
RunnerInfo MakeInfo(const ModelConfig& config, const BuiltStep& built,
                    const SamplingStep& step,
                    const StepRunnerOptions& options) {
  RunnerInfo info;
  info.slots = built.slots;
  info.max_rows = options.max_rows;
  info.depth = kDepth;
  info.vocab_size = config.vocab_size;
  info.mem_len = config.mem_len;
  info.spare_rows = step.ring().spare;
  info.bytes_per_slot = step.BytesPerSlot();
  info.window = step.ring().window;
  info.identity = step.identity();
  info.derives = step.derives();
  info.verifies_guesses = step.verifies_guesses();
  info.rebuild_ids =
      config.mem_len + (config.n_layer - 1) * (info.window - 1) + 1;
  info.device = built.device;
  info.form = built.form;
  info.weight_dtype = built.weight_format;
  return info;
}

// `build` returns absl::StatusOr<BuiltStep>.
template <typename Build>
absl::StatusOr<std::unique_ptr<StepRunner>> MakeRunner(
    const ModelConfig& config, const StepRunnerOptions& options,
    const Build& build) {
  BuiltStep built;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("preparing the slots", [&] {
    absl::StatusOr<BuiltStep> made = build();
    if (made.ok()) built = *std::move(made);
    return made.status();
  }));
  const bool on_host = built.step != nullptr;
  std::unique_ptr<SamplingStep> step =
      on_host ? SampleOnHost(std::move(built.step), BinsOf(config), built.slots)
              : std::move(built.sampling);
  RunnerInfo info = MakeInfo(config, built, *step, options);
  if (!on_host) {
    info.imports_aside = true;
    info.most_top_logprobs = SamplingStep::kMostTopLogprobs;
  }
  return MakeSamplingStepRunner(std::move(info), std::move(step));
}

absl::StatusOr<Weights> LoadOnto(const ModelDirectory& directory,
                                 c10::Device device) {
  LoadOptions load;
  load.device = device;
  Weights weights;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("loading the weights", [&] {
    absl::StatusOr<Weights> loaded = LoadDirectoryWeights(directory, load);
    if (loaded.ok()) weights = *std::move(loaded);
    return loaded.status();
  }));
  return weights;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> CreateStepRunner(
    const ModelConfig& config, const Weights& weights,
    const std::string& fingerprint, const StepRunnerOptions& options) {
  TXL_RETURN_IF_ERROR(CheckStepOptions(options));
  std::optional<int> cuda;
  if (weights.layers.at(0).wq.is_cpu()) {
    TXL_ASSIGN_OR_RETURN(const StepPlace place, ChooseStepPlace(options));
    cuda = place.native_cuda;
  }
  return MakeRunner(config, options, [&] {
    return cuda.has_value()
               ? BuildCudaStep(config, weights, fingerprint, options, *cuda)
               : BuildStep(config, weights, fingerprint, options);
  });
}

absl::StatusOr<std::unique_ptr<StepRunner>> LoadStepRunner(
    const ModelDirectory& directory, const StepRunnerOptions& options) {
  TXL_RETURN_IF_ERROR(CheckStepOptions(options));
  TXL_ASSIGN_OR_RETURN(const StepPlace place, ChooseStepPlace(options));
  TXL_ASSIGN_OR_RETURN(const Weights weights,
                       LoadOnto(directory, place.weights));
  return CreateStepRunner(directory.config, weights, directory.fingerprint,
                          options);
}

}  // namespace txl
