#pragma once

// The fake device with a device's faults: at random, by odds.

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/step_runner.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/server/simulation/faults.h"
#include "tests/server/simulation/odds.h"
#include "tests/server/simulation/random.h"

namespace txl::simulation {

class FaultyRunner : public StepRunner {
 public:
  // Pointers outlive the runner.
  FaultyRunner(const Odds& odds, Random* random, FaultCounts* faults);

  const RunnerInfo& info() const override { return fake_.info(); }
  StepId Submit(StepPlan plan) override;
  absl::StatusOr<StepResult> Collect(StepId step) override;
  void Configure(int32_t slot, SlotSampling sampling) override;
  void Clear(int32_t slot) override { fake_.Clear(slot); }
  void Copy(int32_t from, int32_t to) override { fake_.Copy(from, to); }
  std::future<absl::StatusOr<StateImage>> Export(int32_t slot,
                                                 int64_t position) override;
  std::future<absl::Status> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override;

  // No new faults from now on.
  void Mend() { odds_ = FaultOdds(); }
  // States on their way arrive: some of them, at random.
  void SomeArrive();
  void AllArrive();

  // Turns that the faults so far may have ended, at most: a step those with a
  // row in it, everything else one.
  int64_t turns_hit() const { return turns_hit_; }
  // Rows that went through the layers.
  int64_t rows() const { return rows_; }
  int64_t steps() const { return steps_; }
  const FakeStepRunner& model() const { return fake_; }

 private:
  using Exported = absl::StatusOr<StateImage>;
  struct Held {
    std::promise<Exported> promise;
    Exported image;
  };

  FakeStepRunner fake_;
  FaultOdds odds_;
  Random* const random_;
  FaultCounts* const faults_;
  std::vector<Held> held_;
  int in_flight_ = 0;
  int64_t turns_hit_ = 0;
  int64_t rows_ = 0;
  int64_t steps_ = 0;
};

}  // namespace txl::simulation
