#include "server/engine/plan_executor.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/step/model_step.h"
#include "server/engine/device_errors.h"
#include "server/engine/row_errors.h"

namespace txl {

namespace {

// Scored tokens say beforehand which clusters will be looked at.
std::vector<ClusterOfRow> ScoredClusters(
    const StepPlan& plan, const std::vector<PlanSegment>& segments,
    const VocabularyBins& bins) {
  std::vector<ClusterOfRow> clusters;
  int64_t next = 0;
  for (const PlanSegment& segment : segments) {
    for (const int32_t output : segment.outputs) {
      const StepRow& row =
          plan.rows[segment.first_row + static_cast<size_t>(output)];
      const size_t bin = bins.BinOf(row.score_target);
      if (row.kind == RowKind::kScore && bin > 0) {
        clusters.push_back({next, bin - 1});
      }
      ++next;
    }
  }
  return clusters;
}

}  // namespace

PlanExecutor::PlanExecutor(RunnerInfo info, VocabularyBins bins,
                           std::unique_ptr<ModelStep> step)
    : info_(std::move(info)),
      sampler_(std::move(bins)),
      step_(std::move(step)),
      slots_(info_.slots) {}

PlanExecutor::~PlanExecutor() = default;

absl::StatusOr<StepResult> PlanExecutor::Run(const StepPlan& plan) {
  TXL_RETURN_IF_ERROR(CheckPlan(plan, info_));
  StepResult result;
  const absl::Status status = CatchDeviceErrors("step", [&] {
    result = RunOrThrow(plan);
    return absl::OkStatus();
  });
  if (!status.ok()) {
    ForgetSampled(plan);
    return status;
  }
  return result;
}

// Until a decoding row has its token, nobody may feed "the last one".
void PlanExecutor::ForgetSampled(const StepPlan& plan) {
  for (const StepRow& row : plan.rows) {
    if (row.kind == RowKind::kDecode) {
      slots_[row.slot].state.last_sampled.reset();
    }
  }
}

StepResult PlanExecutor::RunOrThrow(const StepPlan& plan) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::optional<int32_t>> last_sampled;
  for (const Slot& slot : slots_) {
    last_sampled.push_back(slot.state.last_sampled);
  }
  SegmentedPlan segmented = SegmentPlan(plan, last_sampled);
  ForgetSampled(plan);
  StepResult result;
  result.rows.resize(plan.rows.size());
  for (const size_t row : segmented.unknown_inputs) {
    result.rows[row].status = UnknownInput();
  }
  DropUnhealthy(segmented, result);
  Derive(segmented, result);
  if (!segmented.segments.empty()) RunSegments(plan, segmented, result);
  result.device_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return result;
}

void PlanExecutor::DropUnhealthy(SegmentedPlan& segmented,
                                 StepResult& result) const {
  std::erase_if(segmented.segments, [&](const PlanSegment& segment) {
    const absl::Status& health = slots_[segment.slot].health;
    if (health.ok()) return false;
    for (size_t i = 0; i < segment.tokens.size(); ++i) {
      result.rows[segment.first_row + i].status = health;
    }
    return true;
  });
}

void PlanExecutor::Derive(const SegmentedPlan& segmented, StepResult& result) {
  for (const PlanDerivation& derivation : segmented.derivations) {
    const absl::Status& health = slots_[derivation.slot].health;
    if (health.ok()) {
      step_->Derive(derivation.slot, derivation.rows);
      continue;
    }
    for (int64_t i = 0; i < derivation.rows; ++i) {
      result.rows[derivation.first_row + static_cast<size_t>(i)].status =
          health;
    }
  }
}

void PlanExecutor::RunSegments(const StepPlan& plan,
                               const SegmentedPlan& segmented,
                               StepResult& result) {
  std::vector<StepSegment> segments;
  for (const PlanSegment& segment : segmented.segments) {
    segments.push_back(
        {segment.slot, segment.position, segment.tokens, segment.outputs});
  }
  const absl::Span<NextTokenDistribution* const> distributions =
      step_->Run(segments);
  step_->EvaluateClusters(
      ScoredClusters(plan, segmented.segments, sampler_.bins()));
  size_t next = 0;
  for (const PlanSegment& segment : segmented.segments) {
    for (const int32_t output : segment.outputs) {
      const size_t row = segment.first_row + static_cast<size_t>(output);
      result.rows[row] = ReportRow(plan.rows[row], *distributions[next++],
                                   sampler_, slots_[segment.slot].state);
    }
  }
  result.softmax_tails = CountTails(distributions, sampler_.bins());
}

void PlanExecutor::Configure(int32_t slot, SlotSampling sampling) {
  if (!CheckSlot(slot, info_).ok()) return;
  slots_[slot].state.sampling = std::move(sampling);
  slots_[slot].state.last_sampled.reset();
}

void PlanExecutor::Clear(int32_t slot) {
  if (!CheckSlot(slot, info_).ok()) return;
  slots_[slot].state.last_sampled.reset();
  slots_[slot].health = CatchDeviceErrors("clearing a slot", [&] {
    step_->Clear(slot);
    return absl::OkStatus();
  });
}

void PlanExecutor::Copy(int32_t from, int32_t to) {
  if (!CheckSlot(from, info_).ok() || !CheckSlot(to, info_).ok()) return;
  slots_[to].state.last_sampled.reset();
  slots_[to].health = CatchDeviceErrors("copying a slot", [&] {
    step_->Copy(from, to);
    return slots_[from].health;
  });
}

absl::StatusOr<StateImage> PlanExecutor::Export(int32_t slot,
                                                int64_t position) {
  TXL_RETURN_IF_ERROR(CheckExport(slot, position, info_));
  TXL_RETURN_IF_ERROR(slots_[slot].health);
  StateImage image;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("exporting a state", [&] {
    image = step_->Export(slot, position);
    return absl::OkStatus();
  }));
  return image;
}

absl::Status PlanExecutor::Import(int32_t slot, const StateImage& image) {
  TXL_RETURN_IF_ERROR(CheckSlot(slot, info_));
  absl::Status refused;  // the image's fault: nothing was changed
  const absl::Status broken = CatchDeviceErrors("importing a state", [&] {
    refused = step_->Import(slot, image);
    return absl::OkStatus();
  });
  TXL_RETURN_IF_ERROR(refused);
  slots_[slot].state.last_sampled.reset();
  slots_[slot].health = broken;
  return broken;
}

}  // namespace txl
