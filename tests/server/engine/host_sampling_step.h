#pragma once

// A SamplingStep for tests, on a ModelStep of the host. It does everything as
// late as it may, when somebody waits for it, so that a runner that looks too
// early or needs the host to know a token is noticed; it notes every broken
// precondition; and its calls can be made to throw or to wait.

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "model/sampling/sampler.h"
#include "model/step/model_step.h"
#include "model/step/sampling_step.h"

namespace txl {

enum class StepCall {
  kConfigure,
  kQueue,
  kCollect,
  kClear,
  kCopy,
  kImport,
  kBring,
  kExport,
  kTake,
};

// The test's hand on a step that a runner owns. Thread-safe.
class StepControl {
 public:
  // The next such call throws instead of doing anything. (Collect does what is
  // queued and loses the results.)
  template <typename Exception>
  void Throw(StepCall call, Exception exception) {
    absl::MutexLock lock(&mutex_);
    errors_[call] = std::make_exception_ptr(std::move(exception));
  }
  // Such calls wait from now on, and no more.
  void Hold(StepCall call);
  void Release(StepCall call);
  // Of the step's contract, broken by its user; a test ends with this empty.
  std::vector<std::string> violations() const;

 private:
  friend class HostSamplingStep;
  friend class HostTransfer;
  friend class HostArrival;
  // Waits and throws as it was told.
  void Begin(StepCall call);
  void Violation(std::string what);

  mutable absl::Mutex mutex_;
  std::map<StepCall, std::exception_ptr> errors_ ABSL_GUARDED_BY(mutex_);
  std::set<StepCall> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mutex_);
};

struct HostSamplingOptions {
  int64_t slots = 0;
  int64_t most_banned = 64;
  std::shared_ptr<const TokenKinds> kinds = nullptr;
  double device_seconds = 0.25;  // reported for every step
};

class HostSamplingStep final : public SamplingStep {
 public:
  HostSamplingStep(std::unique_ptr<ModelStep> step, VocabularyBins bins,
                   const HostSamplingOptions& options,
                   std::shared_ptr<StepControl> control);

  bool CanSample(const SamplingParams& params,
                 int64_t banned_ids) const override;
  void Configure(int32_t slot, const SamplingParams& params,
                 const SampleContext& context) override;
  std::unique_ptr<QueuedStep> Queue(absl::Span<const StepRow> rows) override;
  void Clear(int32_t slot) override;
  void Copy(int32_t from, int32_t to) override;
  std::unique_ptr<StateArrival> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override;
  std::unique_ptr<StateTransfer> Export(int32_t slot,
                                        int64_t position) override;

  const RingGeometry& ring() const override { return step_->ring(); }
  const StateIdentity& identity() const override { return step_->identity(); }
  int64_t BytesPerSlot() const override { return step_->BytesPerSlot(); }

 private:
  friend class HostQueuedStep;
  friend class HostTransfer;
  struct Slot {
    bool configured = false;  // as far as calls came in
    SamplingParams params;
    std::vector<int32_t> recent_ids, banned_ids;
    int64_t min_position = 0;
    std::optional<int32_t> last_sampled;
  };
  struct Queued {
    std::vector<StepRow> rows;
    SampledRows results;
    int64_t done_at = 0;  // number of the work after which they are there
  };

  // A call from the thread that all of them come from.
  void Begin(StepCall call);
  // Adds to what has to be done; its number.
  int64_t Add(std::function<void()> work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DoUntil(int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckRows(absl::Span<const StepRow> rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SampledRows Collect(const std::shared_ptr<Queued>& step);
  void RunStep(Queued& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RowResult Report(const StepRow& row, NextTokenDistribution& distribution)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Sampler sampler_;
  const HostSamplingOptions options_;
  const std::shared_ptr<StepControl> control_;
  const std::unique_ptr<ModelStep> step_;

  absl::Mutex mutex_;
  std::optional<std::thread::id> caller_ ABSL_GUARDED_BY(mutex_);
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  int64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Queued>> queued_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
