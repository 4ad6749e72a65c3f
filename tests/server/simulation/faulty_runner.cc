#include "tests/server/simulation/faulty_runner.h"

#include <set>
#include <utility>

namespace txl::simulation {
namespace {

absl::Status DeviceError() { return absl::InternalError("the device is ill"); }

int64_t SlotsOf(const StepPlan& plan) {
  std::set<int32_t> slots;
  for (const StepRow& row : plan.rows) slots.insert(row.slot);
  return static_cast<int64_t>(slots.size());
}

}  // namespace

FaultyRunner::FaultyRunner(const Odds& odds, Random* random,
                           FaultCounts* faults)
    : fake_(odds.runner),
      odds_(odds.faults),
      random_(random),
      faults_(faults) {}

StepId FaultyRunner::Submit(StepPlan plan) {
  if (random_->Chance(odds_.step_fails)) {
    fake_.FailStep(steps_, DeviceError());
    faults_->Fired(Fault::kStepFails);
    turns_hit_ += SlotsOf(plan);
  }
  const StepRow& row = random_->Pick(plan.rows);
  if (row.kind != RowKind::kDerive && random_->Chance(odds_.row_not_finite)) {
    fake_.FailRow(row.slot, row.position);
    faults_->Fired(Fault::kRowNotFinite);
    ++turns_hit_;
  }
  for (const StepRow& each : plan.rows) {
    if (each.kind != RowKind::kDerive) ++rows_;
  }
  ++steps_;
  ++in_flight_;
  return fake_.Submit(std::move(plan));
}

absl::StatusOr<StepResult> FaultyRunner::Collect(StepId step) {
  --in_flight_;
  absl::StatusOr<StepResult> result = fake_.Collect(step);
  if (result.ok() && random_->Chance(odds_.step_short)) {
    faults_->Fired(Fault::kStepShort);
    turns_hit_ += static_cast<int64_t>(result->rows.size());
    result->rows.pop_back();
  }
  return result;
}

void FaultyRunner::Configure(int32_t slot, SlotSampling sampling) {
  fake_.Configure(slot, std::move(sampling));
}

std::future<absl::StatusOr<StateImage>> FaultyRunner::Export(int32_t slot,
                                                             int64_t position) {
  if (random_->Chance(odds_.export_fails)) {
    fake_.FailNextExport(DeviceError());
    faults_->Fired(Fault::kExportFails);
    ++turns_hit_;
  }
  if (!random_->Chance(odds_.export_late)) return fake_.Export(slot, position);
  faults_->Fired(Fault::kExportLate);
  Exported image = fake_.Export(slot, position).get();
  // Where nothing else is under way the scheduler waits for it.
  if (in_flight_ == 0 || random_->Chance(0.5)) {
    return std::async(std::launch::deferred,
                      [image = std::move(image)]() mutable -> Exported {
                        return std::move(image);
                      });
  }
  held_.push_back({{}, std::move(image)});
  return held_.back().promise.get_future();
}

std::future<absl::Status> FaultyRunner::Import(
    int32_t slot, std::shared_ptr<const StateImage> image) {
  if (random_->Chance(odds_.import_fails)) {
    const bool bad = random_->Chance(odds_.image_bad);
    faults_->Fired(bad ? Fault::kImageBad : Fault::kImportFails);
    fake_.FailNextImport(bad ? absl::DataLossError("checksum") : DeviceError());
    ++turns_hit_;
  } else if (random_->Chance(odds_.import_late)) {
    faults_->Fired(Fault::kImportLate);
    fake_.HoldImports();
  }
  return fake_.Import(slot, std::move(image));
}

void FaultyRunner::SomeArrive() {
  // The scheduler waits for what is late once it has nothing in flight.
  if (in_flight_ == 0 || random_->Chance(0.3)) AllArrive();
}

void FaultyRunner::AllArrive() {
  for (Held& held : std::exchange(held_, {})) {
    held.promise.set_value(std::move(held.image));
  }
  if (random_->Chance(0.5)) fake_.ReleaseImports();
}

}  // namespace txl::simulation
