#include "server/engine/device_step_runner.h"

#include <future>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "model/step/model_step.h"
#include "server/engine/device_queue.h"
#include "server/engine/plan_executor.h"

namespace txl {
namespace {

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

  std::future<absl::Status> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override {
    using Task = std::packaged_task<absl::Status()>;
    auto task = std::make_shared<Task>([this, slot, image = std::move(image)] {
      return executor_.Import(slot, *image);
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

}  // namespace

std::unique_ptr<StepRunner> MakeDeviceStepRunner(
    RunnerInfo info, VocabularyBins bins, std::unique_ptr<ModelStep> step) {
  return std::make_unique<DeviceStepRunner>(std::move(info), std::move(bins),
                                            std::move(step));
}

}  // namespace txl
