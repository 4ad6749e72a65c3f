#include "server/engine/device_step_runner.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/weights.h"
#include "server/engine/cuda_builder.h"
#include "server/engine/device_errors.h"
#include "server/engine/device_queue.h"
#include "server/engine/plan_executor.h"
#include "server/engine/step_builder.h"
#include "server/engine/step_place.h"

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

RunnerInfo MakeInfo(const ModelConfig& config, const BuiltStep& built,
                    const StepRunnerOptions& options) {
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
  RunnerInfo info = MakeInfo(config, built, options);
  return std::make_unique<DeviceStepRunner>(std::move(info), BinsOf(config),
                                            std::move(built.step));
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
