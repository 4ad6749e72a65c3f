#pragma once

// What the device thread does: executes plans and changes of slots, one after
// the other, on a ModelStep. LibTorch's exceptions end here.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/memory/state_image.h"
#include "model/sampling/sampler.h"
#include "server/engine/plan_segments.h"
#include "server/engine/row_reporter.h"
#include "server/engine/step_runner.h"

namespace txl {

class ModelStep;

// Thread-compatible: one thread at a time. The calls mean what those of
// StepRunner mean.
class PlanExecutor {
 public:
  // `info`: limits that plans are checked against.
  PlanExecutor(RunnerInfo info, VocabularyBins bins,
               std::unique_ptr<ModelStep> step);
  ~PlanExecutor();

  // One step. A row that cannot run, or whose numbers are not finite, has its
  // own status; a device error is the step's. InvalidArgument: the plan breaks
  // what Submit requires.
  absl::StatusOr<StepResult> Run(const StepPlan& plan);

  void Configure(int32_t slot, SlotSampling sampling);
  void Clear(int32_t slot);
  void Copy(int32_t from, int32_t to);
  absl::StatusOr<StateImage> Export(int32_t slot, int64_t position);
  absl::Status Import(int32_t slot, const StateImage& image);

 private:
  struct Slot {
    SlotState state;
    // Not OK after a device error while the slot was cleared, copied to or
    // imported: its rows are unknown, so that it runs nothing until one of
    // these goes well.
    absl::Status health;
  };

  StepResult RunOrThrow(const StepPlan& plan);
  void ForgetSampled(const StepPlan& plan);
  void DropUnhealthy(SegmentedPlan& segmented, StepResult& result) const;
  void Derive(const SegmentedPlan& segmented, StepResult& result);
  void RunSegments(const StepPlan& plan, const SegmentedPlan& segmented,
                   StepResult& result);

  const RunnerInfo info_;
  const Sampler sampler_;
  const std::unique_ptr<ModelStep> step_;
  std::vector<Slot> slots_;
};

}  // namespace txl
