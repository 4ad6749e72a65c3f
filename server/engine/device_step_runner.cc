#include "server/engine/device_step_runner.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/format_names.h"
#include "model/cpu/native_step.h"
#include "model/torch/torch_model_step.h"
#include "model/torch/torch_step.h"
#include "server/engine/device_errors.h"
#include "server/engine/device_name.h"
#include "server/engine/device_queue.h"
#include "server/engine/plan_executor.h"

namespace txl {
namespace {

// Two steps: the next one is queued while the scheduler reads the last.
constexpr int32_t kDepth = 2;

class DeviceStepRunner : public StepRunner {
 public:
  DeviceStepRunner(RunnerInfo info, VocabularyBins bins,
                   std::unique_ptr<ModelStep> step)
      : info_(info), executor_(info, std::move(bins), std::move(step)) {}

  const RunnerInfo& info() const override { return info_; }

  StepId Submit(StepPlan plan) override {
    const StepId id = next_step_++;
    queue_.Add([this, id, plan = std::move(plan)] {
      absl::StatusOr<StepResult> result = executor_.Run(plan);
      absl::MutexLock lock(&mutex_);
      done_.emplace(id, std::move(result));
    });
    return id;
  }

  absl::StatusOr<StepResult> Collect(StepId step) override {
    if (step != next_collect_ || step >= next_step_) {
      return absl::FailedPreconditionError(
          absl::StrCat("step ", step, " is not the next one in flight"));
    }
    ++next_collect_;
    absl::MutexLock lock(&mutex_);
    const auto is_done = [this, step]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return done_.contains(step);
    };
    mutex_.Await(absl::Condition(&is_done));
    return std::move(done_.extract(step).mapped());
  }

  void Configure(int32_t slot, SlotSampling sampling) override {
    queue_.Add([this, slot, sampling = std::move(sampling)]() mutable {
      executor_.Configure(slot, std::move(sampling));
    });
  }

  void Clear(int32_t slot) override {
    queue_.Add([this, slot] { executor_.Clear(slot); });
  }

  void Copy(int32_t from, int32_t to) override {
    queue_.Add([this, from, to] { executor_.Copy(from, to); });
  }

  std::future<absl::StatusOr<StateImage>> Export(int32_t slot,
                                                 int64_t position) override {
    using Task = std::packaged_task<absl::StatusOr<StateImage>()>;
    auto task = std::make_shared<Task>(
        [this, slot, position] { return executor_.Export(slot, position); });
    queue_.Add([task] { (*task)(); });
    return task->get_future();
  }

  std::future<absl::Status> Import(int32_t slot, StateImage image) override {
    using Task = std::packaged_task<absl::Status()>;
    auto task = std::make_shared<Task>([this, slot, image = std::move(image)] {
      return executor_.Import(slot, image);
    });
    queue_.Add([task] { (*task)(); });
    return task->get_future();
  }

 private:
  const RunnerInfo info_;

  // The caller's thread only.
  StepId next_step_ = 0;
  StepId next_collect_ = 0;

  PlanExecutor executor_;  // the device thread only

  absl::Mutex mutex_;
  std::map<StepId, absl::StatusOr<StepResult>> done_ ABSL_GUARDED_BY(mutex_);

  DeviceQueue queue_;  // last: its thread uses everything above
};

absl::Status CheckOptions(const StepRunnerOptions& options) {
  if (options.slots < 0) {
    return absl::InvalidArgumentError("slots: must not be negative");
  }
  if (options.slots == 0 && options.slot_bytes <= 0) {
    return absl::InvalidArgumentError("slot_bytes: must be positive");
  }
  if (options.spare_rows < 8) {
    return absl::InvalidArgumentError("spare_rows: must be at least 8");
  }
  if (options.max_rows < 1) {
    return absl::InvalidArgumentError("max_rows: must be at least 1");
  }
  if (options.step != "auto" && options.step != "native" &&
      options.step != "torch") {
    return absl::InvalidArgumentError(absl::StrCat(
        "step: \"", options.step, "\" is none of auto, native, torch"));
  }
  if (options.threads < 1) {
    return absl::InvalidArgumentError("threads: must be at least 1");
  }
  return absl::OkStatus();
}

VocabularyBins Bins(const ModelConfig& config) {
  VocabularyBins bins;
  bins.ends = config.cutoffs;
  bins.ends.push_back(config.vocab_size);
  return bins;
}

bool UseNative(const at::Tensor& weight, const std::string& step) {
  if (step != "auto") return step == "native";
  return weight.is_cpu() && weight.scalar_type() == at::kFloat;
}

absl::StatusOr<int32_t> SlotCount(int64_t slot_bytes,
                                  const StepRunnerOptions& options) {
  if (options.slots > 0) return options.slots;
  const int64_t fit = options.slot_bytes / slot_bytes;
  if (fit < 1) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "slot_bytes: ", options.slot_bytes,
        " bytes hold no slot; one of this model takes ", slot_bytes));
  }
  // More could not decode in one step.
  return static_cast<int32_t>(std::min<int64_t>(fit, options.max_rows));
}

struct BuiltStep {
  std::unique_ptr<ModelStep> step;
  int32_t slots = 0;
  std::string form;
  std::string weight_format;
};

absl::StatusOr<NumberFormat> ParseFormat(absl::string_view option,
                                         absl::Span<const NamedFormat> formats,
                                         const std::string& name) {
  const std::optional<NumberFormat> format = FindFormat(formats, name);
  if (format.has_value()) return *format;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": \"", name, "\" is none of ", JoinNames(formats)));
}

// Nothing: the model's cheaper form.
absl::StatusOr<std::optional<AttentionForm>> ParseForm(
    const std::string& name) {
  const std::optional<AttentionForm> form = FindForm(name);
  if (form.has_value() || name == "auto") return form;
  return absl::InvalidArgumentError(absl::StrCat(
      "form: \"", name, "\" is none of auto, projected, absorbed"));
}

absl::StatusOr<NativeFormats> ParseFormats(const StepRunnerOptions& options) {
  NativeFormats formats;
  TXL_ASSIGN_OR_RETURN(formats.weights,
                       ParseFormat("weights", kWeightFormats, options.weights));
  TXL_ASSIGN_OR_RETURN(formats.memory,
                       ParseFormat("memory", kRowFormats, options.memory));
  TXL_ASSIGN_OR_RETURN(formats.derived,
                       ParseFormat("derived", kRowFormats, options.derived));
  TXL_ASSIGN_OR_RETURN(formats.form, ParseForm(options.form));
  return formats;
}

absl::StatusOr<BuiltStep> BuildNative(const ModelConfig& config,
                                      const Weights& weights,
                                      const std::string& fingerprint,
                                      const StepRunnerOptions& options) {
  BuiltStep built;
  built.weight_format = options.weights;
  NativeStepOptions native;
  TXL_ASSIGN_OR_RETURN(native.formats, ParseFormats(options));
  built.form = FormName(ResolveForm(config, native.formats));
  TXL_ASSIGN_OR_RETURN(
      built.slots,
      SlotCount(NativeStepSlotBytes(config, options.spare_rows, native.formats),
                options));
  native.slots = built.slots;
  native.spare_rows = options.spare_rows;
  native.max_rows = options.max_rows;
  native.threads = options.threads;
  native.fingerprint = fingerprint;
  TXL_ASSIGN_OR_RETURN(built.step, CreateNativeStep(config, weights, native));
  return built;
}

absl::StatusOr<BuiltStep> BuildTorch(const ModelConfig& config,
                                     const Weights& weights,
                                     const std::string& fingerprint,
                                     const StepRunnerOptions& options) {
  BuiltStep built;
  built.form = "absorbed";
  if (options.weights != "f32" || options.memory != "f32" ||
      options.derived != "f32") {
    return absl::InvalidArgumentError(
        "weights, memory, derived: the torch step keeps f32");
  }
  TXL_ASSIGN_OR_RETURN(const auto form, ParseForm(options.form));
  if (form == AttentionForm::kProjected) {
    return absl::InvalidArgumentError("form: the torch step is absorbed");
  }
  const bool is_double = weights.layers.at(0).wq.scalar_type() == at::kDouble;
  built.weight_format = is_double ? "f64" : "f32";
  const int64_t element_bytes = weights.layers.at(0).wq.element_size();
  TXL_ASSIGN_OR_RETURN(
      built.slots,
      SlotCount(TorchSlotBytes(config, options.spare_rows, element_bytes),
                options));
  TorchStepOptions torch;
  torch.slots = built.slots;
  torch.spare_rows = options.spare_rows;
  torch.fingerprint = fingerprint;
  TXL_ASSIGN_OR_RETURN(std::unique_ptr<TorchStep> step,
                       TorchStep::Create(config, weights, torch));
  built.step = AsModelStep(std::move(step), Bins(config));
  return built;
}

RunnerInfo MakeInfo(const ModelConfig& config, const at::Tensor& weight,
                    const BuiltStep& built, const StepRunnerOptions& options) {
  RunnerInfo info;
  info.slots = built.slots;
  info.spare_rows = built.step->ring().spare;
  info.max_rows = options.max_rows;
  info.depth = kDepth;
  info.bytes_per_slot = built.step->BytesPerSlot();
  info.vocab_size = config.vocab_size;
  info.mem_len = config.mem_len;
  info.window = built.step->ring().window;
  info.derives = built.step->derives();
  info.rebuild_ids =
      config.mem_len + (config.n_layer - 1) * (info.window - 1) + 1;
  info.identity = built.step->identity();
  info.device = DeviceName(weight.device());
  info.form = built.form;
  info.weight_dtype = built.weight_format;
  return info;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> CreateStepRunner(
    const ModelConfig& config, const Weights& weights,
    const std::string& fingerprint, const StepRunnerOptions& options) {
  TXL_RETURN_IF_ERROR(CheckOptions(options));
  const at::Tensor weight = weights.layers.at(0).wq;
  BuiltStep built;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("preparing the slots", [&] {
    absl::StatusOr<BuiltStep> made =
        UseNative(weight, options.step)
            ? BuildNative(config, weights, fingerprint, options)
            : BuildTorch(config, weights, fingerprint, options);
    if (made.ok()) built = *std::move(made);
    return made.status();
  }));
  RunnerInfo info = MakeInfo(config, weight, built, options);
  return std::make_unique<DeviceStepRunner>(std::move(info), Bins(config),
                                            std::move(built.step));
}

absl::StatusOr<std::unique_ptr<StepRunner>> LoadStepRunner(
    const ModelDirectory& directory, const StepRunnerOptions& options) {
  TXL_RETURN_IF_ERROR(CheckOptions(options));
  TXL_ASSIGN_OR_RETURN(const c10::Device device, ResolveDevice(options.device));
  LoadOptions load;
  load.device = device;
  Weights weights;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("loading the weights", [&] {
    absl::StatusOr<Weights> loaded = LoadDirectoryWeights(directory, load);
    if (loaded.ok()) weights = *std::move(loaded);
    return loaded.status();
  }));
  return CreateStepRunner(directory.config, weights, directory.fingerprint,
                          options);
}

}  // namespace txl
