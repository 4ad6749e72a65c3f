#pragma once

// A runner whose steps are said to take the same time, whatever else the
// machine does: what the scheduler decides by a step's cost is then the same
// in every run of a test.

#include <future>
#include <memory>
#include <utility>

#include "server/engine/step_runner.h"

namespace txl {

class TimedRunner final : public StepRunner {
 public:
  TimedRunner(std::unique_ptr<StepRunner> runner, double step_seconds)
      : runner_(std::move(runner)), step_seconds_(step_seconds) {}

  const RunnerInfo& info() const override { return runner_->info(); }
  StepId Submit(StepPlan plan) override {
    return runner_->Submit(std::move(plan));
  }
  absl::StatusOr<StepResult> Collect(StepId step) override {
    absl::StatusOr<StepResult> result = runner_->Collect(step);
    if (result.ok()) result->device_seconds = step_seconds_;
    return result;
  }
  void Configure(int32_t slot, SlotSampling sampling) override {
    runner_->Configure(slot, std::move(sampling));
  }
  void Clear(int32_t slot) override { runner_->Clear(slot); }
  void Copy(int32_t from, int32_t to) override { runner_->Copy(from, to); }
  std::future<absl::StatusOr<StateImage>> Export(int32_t slot,
                                                 int64_t position) override {
    return runner_->Export(slot, position);
  }
  std::future<absl::Status> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override {
    return runner_->Import(slot, std::move(image));
  }

 private:
  const std::unique_ptr<StepRunner> runner_;
  const double step_seconds_;
};

}  // namespace txl
