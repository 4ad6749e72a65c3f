#pragma once

// A StepRunner without weights for tests of the scheduler. It behaves as a
// one-layer model with an empty start whose stored row is the id fed at a
// position: the distribution after position t is a hash of the (position, id)
// pairs that t sees (with beat positions, also of their ticks), and the sampled
// token is its most probable id. So wrong
// tokens, positions, slots, lost rows or wrong restores change the text.
//
// It keeps the same ring as a real runner and two steps in flight, and notes
// every broken precondition in violations().

#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "model/memory/ring.h"
#include "model/memory/state_image.h"
#include "server/engine/step_runner.h"
#include "tests/fakes/fake_runner_info.h"

namespace txl {

// Thread-safe, so that a test may look while the scheduler's thread works.
class FakeStepRunner : public StepRunner {
 public:
  explicit FakeStepRunner(FakeStepRunnerOptions options = {});

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

  // The distribution after a session's ids (position 0 on): log-probabilities
  // of every id.
  std::vector<float> LogProbs(absl::Span<const int32_t> ids) const;
  // The token that follows ids; ids in `banned` are passed over.
  int32_t NextToken(absl::Span<const int32_t> ids,
                    absl::Span<const int32_t> banned = {}) const;
  // ids' next `count` tokens.
  std::vector<int32_t> Continue(std::vector<int32_t> ids, int count) const;

  // The step with this number (from 0, in order of Submit) fails whole.
  void FailStep(int64_t number, absl::Status status);
  // The row of this slot and position is not finite, once.
  void FailRow(int32_t slot, int64_t position);
  void FailNextExport(absl::Status status);
  void FailNextImport(absl::Status status);
  // While held, Collect waits, as if the device were slow.
  void Hold();
  void Release();
  // While held, exported states are on their way and do not arrive.
  void HoldExports();
  void ReleaseExports();
  // While held, imported states are on their way and do not arrive, unless a
  // step has a row of their slot and waits for them ("wait 1" among the calls).
  void HoldImports();
  void ReleaseImports();

  // What came in, oldest first: every plan; and every call as text
  // ("submit 0", "configure 1", "clear 1", "copy 1 2", "export 1 @7",
  // "import 1 @7", "wait 1").
  std::vector<StepPlan> plans() const;
  std::vector<std::string> calls() const;
  // Broken preconditions; a test ends with this empty.
  std::vector<std::string> violations() const;
  // Sampling state: what Configure set, recent_ids grown by sampled tokens.
  SlotSampling sampling(int32_t slot) const;

 private:
  struct Row {
    int64_t position = -1;  // -1: nothing written
    int32_t id = 0;         // Stored
  };
  struct Slot {
    std::vector<Row> ring;
    SlotSampling sampling;
    std::optional<int32_t> last_sampled;
    int64_t underived = 0;  // rows of an imported state
    bool lost = false;      // the state did not come in: rows are of no use
  };
  struct InFlight {
    StepId id = 0;
    absl::Status status;
    StepResult result;
  };

  using ExportResult = absl::StatusOr<StateImage>;
  struct HeldExport {
    std::promise<ExportResult> promise;
    ExportResult result;
  };

  ExportResult MakeImage(int32_t slot, int64_t position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is stored of a row that feeds `id`.
  int32_t Stored(int32_t id, int32_t ticks) const;
  std::vector<float> Distribution(
      absl::Span<const std::pair<int64_t, int32_t>> seen) const;
  // Adds what may not stand behind the slot's last id, which is the row's.
  void BanKinds(const StepRow& row, const Slot& slot,
                std::vector<int32_t>& banned)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RowResult RunRow(const StepRow& row, bool step_fails)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A row behind one that sampled.
  RowResult RunGuess(const StepRow& row, const RowResult& before,
                     bool step_fails) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportRow(const StepRow& row, Slot& slot, RowResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The slot's held import, if there is one.
  bool Arrive(int32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Slot& SlotAt(int32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Violation(std::string what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FakeStepRunnerOptions options_;
  const RingGeometry ring_;
  RunnerInfo info_;

  mutable absl::Mutex mutex_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::deque<InFlight> in_flight_ ABSL_GUARDED_BY(mutex_);
  StepId next_step_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int64_t, absl::Status> step_failures_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int32_t, int64_t>> row_failures_ ABSL_GUARDED_BY(mutex_);
  bool exports_held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<HeldExport> held_exports_ ABSL_GUARDED_BY(mutex_);
  bool imports_held_ ABSL_GUARDED_BY(mutex_) = false;
  // By slot.
  std::map<int32_t, std::promise<absl::Status>> held_imports_
      ABSL_GUARDED_BY(mutex_);
  absl::Status next_export_ ABSL_GUARDED_BY(mutex_);
  absl::Status next_import_ ABSL_GUARDED_BY(mutex_);
  std::vector<StepPlan> plans_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
