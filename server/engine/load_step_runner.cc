#include "server/engine/load_step_runner.h"

#include <ATen/core/Tensor.h>

#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/vector_target.h"
#include "model/step/model_step.h"
#include "model/step/sampling_on_host.h"
#include "server/engine/cuda_builder.h"
#include "server/engine/device_name.h"
#include "server/engine/host_needs.h"
#include "server/engine/sampling_step_runner.h"
#include "server/engine/sound_step.h"
#include "server/engine/step_builder.h"

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
  info.beats = config.beat_positions;
  info.rebuild_ids =
      config.mem_len + (config.n_layer - 1) * (info.window - 1) + 1;
  info.device = built.device;
  info.form = built.form;
  info.weight_dtype = built.weight_format;
  return info;
}

// What is served, and the options that say how.
struct Served {
  const ModelConfig& config;
  const Weights& weights;
  const std::string& fingerprint;
  const StepRunnerOptions& options;
  std::optional<int> cuda;  // the native CUDA step's device
};

absl::StatusOr<ServingStep> Build(const Served& served) {
  BuiltStep built;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("preparing the slots", [&] {
    absl::StatusOr<BuiltStep> made =
        served.cuda.has_value()
            ? BuildCudaStep(served.config, served.weights, served.fingerprint,
                            served.options, *served.cuda)
            : BuildStep(served.config, served.weights, served.fingerprint,
                        served.options);
    if (made.ok()) built = *std::move(made);
    return made.status();
  }));
  ServingStep serving;
  serving.on_host = built.step != nullptr;
  serving.step =
      serving.on_host
          ? SampleOnHost(std::move(built.step), BinsOf(served.config),
                         built.slots, served.options.kinds)
          : std::move(built.sampling);
  serving.facts = std::move(built);
  return serving;
}

absl::Status Test(const Served& served, const ServingStep& serving) {
  SelfTestLimits limits;
  limits.slots = serving.facts.slots;
  limits.max_rows = served.options.max_rows;
  limits.spare = serving.step->ring().spare;
  TXL_ASSIGN_OR_RETURN(const NativeFormats formats,
                       ParseFormats(served.options));
  TXL_ASSIGN_OR_RETURN(const SelfTestDeviation deviation,
                       TryBesideTorch(served.config, served.weights, formats,
                                      *serving.step, limits));
  return JudgeSelfTest(
      deviation,
      SelfTestBoundsOf(
          {formats.weights, formats.memory, formats.derived,
           formats.products == Products::kInteger ? NumberFormat::kInt8
                                                  : NumberFormat::kF32},
          served.config.n_layer));
}

bool IsNativeOnCpu(const Served& served) {
  const at::Tensor& weight = served.weights.layers.at(0).wq;
  return !served.cuda.has_value() && weight.is_cpu() &&
         weight.scalar_type() == at::kFloat;
}

// LibTorch's step keeps float32 and is absorbed.
bool TorchTakes(const StepRunnerOptions& options) {
  return options.weights == "f32" && options.memory == "f32" &&
         options.derived == "f32" && options.products == "float" &&
         options.form != "projected";
}

// What serves these options: the native step where they leave that open and the
// self-test is content with it; on the CPU with a plainer instruction set where
// it is not, and then LibTorch's.
std::vector<StepAttempt> Attempts(const Served& served) {
  const auto build = [&served] { return Build(served); };
  if (served.options.step != "auto" ||
      !(served.cuda.has_value() || IsNativeOnCpu(served))) {
    return {{build, false}};
  }
  std::vector<StepAttempt> attempts = {{build}};
  if (served.cuda.has_value()) return attempts;
  for (const std::string& target :
       NextVectorTargets(VectorTarget(), VectorTargets())) {
    attempts.push_back({[&served, target] {
      UseVectorTarget(target);
      return Build(served);
    }});
  }
  if (!TorchTakes(served.options)) return attempts;
  attempts.push_back({[&served]() -> absl::StatusOr<ServingStep> {
                        StepRunnerOptions torch = served.options;
                        torch.step = "torch";
                        // This step keeps its weights; those may be views of
                        // the file.
                        const Weights weights = CopyOf(served.weights);
                        return Build({served.config, weights,
                                      served.fingerprint, torch, std::nullopt});
                      },
                      false});
  return attempts;
}

absl::StatusOr<std::unique_ptr<StepRunner>> MakeRunner(const Served& served,
                                                       SelfTestReport* report) {
  UseVectorTarget(served.options.vector_target);
  SelfTestReport nobody_reads;
  TXL_ASSIGN_OR_RETURN(
      ServingStep serving,
      FirstSoundStep(
          Attempts(served),
          [&served](const ServingStep& tried) { return Test(served, tried); },
          report == nullptr ? &nobody_reads : report));
  RunnerInfo info =
      MakeInfo(served.config, serving.facts, *serving.step, served.options);
  if (!serving.on_host) {
    info.imports_aside = true;
    info.most_top_logprobs = SamplingStep::kMostTopLogprobs;
  }
  return MakeSamplingStepRunner(std::move(info), std::move(serving.step));
}

// Both the weights and the fingerprint need all bytes of the file.
absl::StatusOr<Weights> LoadWithFingerprint(ModelDirectory& directory,
                                            const LoadOptions& load) {
  std::future<absl::StatusOr<std::string>> fingerprint;
  if (directory.fingerprint.empty()) {
    fingerprint = std::async(std::launch::async,
                             [&directory] { return FingerprintOf(directory); });
  }
  Weights weights;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("loading the weights", [&] {
    absl::StatusOr<Weights> loaded = LoadDirectoryWeights(directory, load);
    if (loaded.ok()) weights = *std::move(loaded);
    return loaded.status();
  }));
  if (fingerprint.valid()) {
    TXL_ASSIGN_OR_RETURN(directory.fingerprint, fingerprint.get());
  }
  return weights;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> CreateStepRunner(
    const ModelConfig& config, const Weights& weights,
    const std::string& fingerprint, const StepRunnerOptions& options,
    SelfTestReport* report) {
  TXL_RETURN_IF_ERROR(CheckStepOptions(options));
  std::optional<int> cuda;
  if (weights.layers.at(0).wq.is_cpu()) {
    TXL_ASSIGN_OR_RETURN(const StepPlace place, ChooseStepPlace(options));
    cuda = place.native_cuda;
  }
  return MakeRunner({config, weights, fingerprint, options, cuda}, report);
}

absl::StatusOr<std::unique_ptr<StepRunner>> LoadStepRunner(
    ModelDirectory& directory, const StepRunnerOptions& asked,
    SelfTestReport* report) {
  StepRunnerOptions options = asked;
  options.kinds = directory.kinds;
  TXL_RETURN_IF_ERROR(CheckStepOptions(options));
  TXL_ASSIGN_OR_RETURN(const StepPlace place, ChooseStepPlace(options));
  StepRunnerOptions torch = options;
  torch.step = "torch";
  const bool may_fall_back =
      options.step == "auto" && place.native_cuda.has_value();
  if (may_fall_back && !CheckCudaOptions(directory.config, options).ok()) {
    return LoadStepRunner(directory, torch, report);
  }
  absl::StatusOr<std::unique_ptr<StepRunner>> runner;
  {
    const LoadOptions load = {.device = place.weights,
                              // The torch step keeps them.
                              .mapped = options.step != "torch"};
    TXL_ASSIGN_OR_RETURN(const Weights weights,
                         LoadWithFingerprint(directory, load));
    runner = CreateStepRunner(directory.config, weights, directory.fingerprint,
                              options, report);
  }
  if (!may_fall_back ||
      runner.status().code() != absl::StatusCode::kFailedPrecondition) {
    return runner;
  }
  // What LibTorch's step keeps. The report is that of the step it replaces.
  torch.weights = torch.memory = torch.derived = "f32";
  torch.form = "auto";
  return LoadStepRunner(directory, torch, nullptr);
}

}  // namespace txl
