#include "server/engine/sampling_step_runner.h"

#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "model/base/status_macros.h"
#include "server/base/task_thread.h"
#include "server/engine/device_name.h"
#include "server/engine/sampling_plan.h"
#include "server/engine/step_runner.h"

namespace txl {
namespace {

// A step between Submit and Collect.
struct InFlight {
  InFlight(StepId id, StepPlan plan) : id(id), plan(std::move(plan)) {}

  const StepId id;
  const StepPlan plan;
  std::vector<StepId> token_of;  // SampledTokens::Submitted
  // Written by the device thread before it notifies.
  absl::Notification queued;
  absl::Status status;  // of the whole step
  SamplingPlan sampling;
  std::unique_ptr<QueuedStep> step;  // null: none of its rows runs
};

class SamplingStepRunner final : public StepRunner {
 public:
  SamplingStepRunner(RunnerInfo info, std::unique_ptr<SamplingStep> step)
      : info_(std::move(info)),
        step_(std::move(step)),
        tokens_(info_.slots),
        slots_(info_.slots),
        arriving_(info_.slots),
        to_clear_(info_.slots) {
    for (SlotReadiness& slot : slots_) {
      slot.sampling = absl::FailedPreconditionError(
          "the slot decodes before it was configured");
    }
  }

  const RunnerInfo& info() const override { return info_; }

  StepId Submit(StepPlan plan) override;
  absl::StatusOr<StepResult> Collect(StepId step) override;
  void Configure(int32_t slot, SlotSampling sampling) override;
  void Clear(int32_t slot) override;
  void Copy(int32_t from, int32_t to) override;
  std::future<absl::StatusOr<StateImage>> Export(int32_t slot,
                                                 int64_t position) override;
  std::future<absl::Status> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override;

 private:
  using ImagePromise = std::promise<absl::StatusOr<StateImage>>;

  absl::StatusOr<StepResult> WaitFor(const InFlight& step);

  // Called on the device thread.
  void Queue(InFlight& step);
  absl::Status ConfigureNow(int32_t slot, const SlotSampling& sampling);
  absl::StatusOr<std::unique_ptr<StateTransfer>> StartExport(int32_t slot,
                                                             int64_t position);
  absl::StatusOr<std::shared_ptr<ImageArrival>> StartImport(
      int32_t slot, std::shared_ptr<const StateImage> image);
  // Before anything reads the slot's rows.
  void Arrive(int32_t slot);
  // What is imported, if anything is on its way.
  void Bring(int32_t slot);

  const RunnerInfo info_;
  const std::unique_ptr<SamplingStep> step_;

  // The caller's thread only.
  StepId next_step_ = 0;
  std::deque<std::shared_ptr<InFlight>> in_flight_;
  SampledTokens tokens_;

  // The device thread only.
  std::vector<SlotReadiness> slots_;
  std::vector<std::shared_ptr<ImageArrival>> arriving_;  // of slots; null: none
  // Slots whose start state is still to be written. It may be as large as any
  // state, and in many slots a copy or an image moves in instead.
  std::vector<bool> to_clear_;

  TaskThread transfers_;
  TaskThread queue_;  // last: its thread uses everything above
};

StepId SamplingStepRunner::Submit(StepPlan plan) {
  auto step = std::make_shared<InFlight>(next_step_++, std::move(plan));
  in_flight_.push_back(step);
  step->status = CheckPlan(step->plan, info_);
  if (!step->status.ok()) {
    step->queued.Notify();
    return step->id;
  }
  step->token_of = tokens_.Submitted(step->id, step->plan);
  queue_.Run([this, step] {
    Queue(*step);
    step->queued.Notify();
  });
  return step->id;
}

void SamplingStepRunner::Queue(InFlight& step) {
  for (const StepRow& row : step.plan.rows) Arrive(row.slot);
  step.status = CatchDeviceErrors("step", [&] {
    step.sampling = MakeSamplingPlan(step.plan, info_, slots_);
    if (!step.sampling.rows.empty()) {
      step.step = step_->Queue(step.sampling.rows);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<StepResult> SamplingStepRunner::Collect(StepId id) {
  if (in_flight_.empty() || in_flight_.front()->id != id) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", id, " is not the next one in flight"));
  }
  const std::shared_ptr<InFlight> step = std::move(in_flight_.front());
  in_flight_.pop_front();
  absl::StatusOr<StepResult> result = WaitFor(*step);
  // A plan that breaks the rules changes nothing.
  if (!step->token_of.empty()) {
    tokens_.Collected(step->id, step->plan, result);
  }
  return result;
}

absl::StatusOr<StepResult> SamplingStepRunner::WaitFor(const InFlight& step) {
  step.queued.WaitForNotification();
  TXL_RETURN_IF_ERROR(step.status);
  StepResult result;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("step", [&] {
    SampledRows sampled;
    if (step.step != nullptr) sampled = step.step->Collect();
    result = MakeStepResult(step.plan, step.sampling, std::move(sampled),
                            tokens_.Lost(step.plan, step.token_of));
    return absl::OkStatus();
  }));
  return result;
}

void SamplingStepRunner::Configure(int32_t slot, SlotSampling sampling) {
  if (!CheckSlot(slot, info_).ok()) return;
  queue_.Run([this, slot, sampling = std::move(sampling)] {
    slots_[slot].sampling = ConfigureNow(slot, sampling);
  });
}

absl::Status SamplingStepRunner::ConfigureNow(int32_t slot,
                                              const SlotSampling& sampling) {
  const auto banned = static_cast<int64_t>(sampling.banned_ids.size());
  SampleContext context;
  context.recent_ids = sampling.recent_ids;
  context.banned_ids = sampling.banned_ids;
  context.position = sampling.min_position;
  return CatchDeviceErrors("configuring a slot", [&]() -> absl::Status {
    if (!step_->CanSample(sampling.params, banned)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the device cannot sample with these parameters (a filter that it "
          "does not know, kinds that the model lacks, or too many of "
          "something): ",
          sampling.params.logit_bias.size(), " biases, ",
          sampling.params.allowed_token_ids.size(), " allowed ids, ", banned,
          " banned ids, a window of ", sampling.params.penalty_window));
    }
    step_->Configure(slot, sampling.params, context);
    return absl::OkStatus();
  });
}

void SamplingStepRunner::Clear(int32_t slot) {
  if (!CheckSlot(slot, info_).ok()) return;
  queue_.Run([this, slot] {
    arriving_[slot] = nullptr;
    to_clear_[slot] = true;
  });
}

void SamplingStepRunner::Copy(int32_t from, int32_t to) {
  if (!CheckSlot(from, info_).ok() || !CheckSlot(to, info_).ok()) return;
  queue_.Run([this, from, to] {
    Arrive(from);
    arriving_[to] = nullptr;
    to_clear_[to] = false;
    slots_[to].rows = CatchDeviceErrors("copying a slot", [&] {
      step_->Copy(from, to);
      return slots_[from].rows;
    });
  });
}

std::future<absl::StatusOr<StateImage>> SamplingStepRunner::Export(
    int32_t slot, int64_t position) {
  auto promise = std::make_shared<ImagePromise>();
  queue_.Run([this, promise, slot, position] {
    auto transfer = StartExport(slot, position);
    if (!transfer.ok()) {
      promise->set_value(transfer.status());
      return;
    }
    transfers_.Run([promise, transfer = std::shared_ptr<StateTransfer>(
                                 *std::move(transfer))] {
      StateImage image;
      const absl::Status status = CatchDeviceErrors("exporting a state", [&] {
        image = transfer->Take();
        return absl::OkStatus();
      });
      if (status.ok()) {
        promise->set_value(std::move(image));
      } else {
        promise->set_value(status);
      }
    });
  });
  return promise->get_future();
}

absl::StatusOr<std::unique_ptr<StateTransfer>> SamplingStepRunner::StartExport(
    int32_t slot, int64_t position) {
  TXL_RETURN_IF_ERROR(CheckExport(slot, position, info_));
  Arrive(slot);
  TXL_RETURN_IF_ERROR(slots_[slot].rows);
  std::unique_ptr<StateTransfer> transfer;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("exporting a state", [&] {
    transfer = step_->Export(slot, position);
    return absl::OkStatus();
  }));
  return transfer;
}

std::future<absl::Status> SamplingStepRunner::Import(
    int32_t slot, std::shared_ptr<const StateImage> image) {
  auto promise = std::make_shared<std::promise<absl::Status>>();
  queue_.Run([this, promise, slot, image = std::move(image)]() mutable {
    const auto arrival = StartImport(slot, std::move(image));
    if (!arrival.ok()) {
      promise->set_value(arrival.status());
      return;
    }
    transfers_.Run([promise, arrival = *arrival] {
      promise->set_value(arrival->Bring().status());
    });
  });
  return promise->get_future();
}

absl::StatusOr<std::shared_ptr<ImageArrival>> SamplingStepRunner::StartImport(
    int32_t slot, std::shared_ptr<const StateImage> image) {
  TXL_RETURN_IF_ERROR(CheckSlot(slot, info_));
  Bring(slot);
  std::unique_ptr<StateArrival> arrival;
  const absl::Status broken = CatchDeviceErrors("importing a state", [&] {
    arrival = step_->Import(slot, std::move(image));
    return absl::OkStatus();
  });
  if (!broken.ok()) {
    to_clear_[slot] = false;
    slots_[slot].rows = broken;
    return broken;
  }
  return arriving_[slot] = std::make_shared<ImageArrival>(std::move(arrival));
}

void SamplingStepRunner::Arrive(int32_t slot) {
  Bring(slot);
  if (!to_clear_[slot]) return;
  to_clear_[slot] = false;
  slots_[slot].rows = CatchDeviceErrors("clearing a slot", [&] {
    step_->Clear(slot);
    return absl::OkStatus();
  });
}

void SamplingStepRunner::Bring(int32_t slot) {
  if (arriving_[slot] == nullptr) return;
  const ImageArrival::Outcome outcome = arriving_[slot]->Bring();
  arriving_[slot] = nullptr;
  if (!outcome.refused.ok()) return;  // the slot is as it was
  to_clear_[slot] = false;
  slots_[slot].rows = outcome.broken;
}

}  // namespace

std::unique_ptr<StepRunner> MakeSamplingStepRunner(
    RunnerInfo info, std::unique_ptr<SamplingStep> step) {
  return std::make_unique<SamplingStepRunner>(std::move(info), std::move(step));
}

ImageArrival::ImageArrival(std::unique_ptr<StateArrival> arrival)
    : arrival_(std::move(arrival)) {}

ImageArrival::Outcome ImageArrival::Bring() {
  absl::MutexLock lock(&mutex_);
  if (arrival_ == nullptr) return outcome_;
  StateArrival& arrival = *arrival_;
  absl::Status refused;
  outcome_.broken = CatchDeviceErrors("importing a state", [&] {
    refused = arrival.Bring();
    return absl::OkStatus();
  });
  outcome_.refused = refused;
  arrival_ = nullptr;
  return outcome_;
}

}  // namespace txl
