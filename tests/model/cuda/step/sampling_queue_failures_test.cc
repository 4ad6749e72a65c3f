// A device that runs out of memory while a step is queued. Only the emulated
// one can be told to.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "tests/model/cuda/emulator/emulated_block.h"
#include "tests/model/cuda/step/sampling_driver.h"

namespace txl {
namespace {

using Steps = std::vector<std::vector<StepRow>>;

class SamplingQueueFailureTest : public testing::Test {
 protected:
  ~SamplingQueueFailureTest() override { cuda::emulator::FailQueueing(0); }

  std::unique_ptr<SamplingStep> Make() const {
    CudaStepOptions options;
    options.slots = 2;
    options.spare_rows = 64;
    options.max_rows = 32;
    auto step = MakeSamplingStep(model_, options);
    for (const int32_t slot : {0, 1}) step->Configure(slot, Greedy(), {});
    return step;
  }

  const RandomCase model_ = PromiseCase();
  const Steps steps_ = {
      {Sample(0, 0, 3), Score(1, 0, 8, 9)},
      {Sample(0, 1, kLastSampled), Score(1, 1, 9, 4)},
      {Sample(0, 2, kLastSampled), Score(1, 2, 4, 30)},
  };
};

// However far a step came before memory ran out, it counts as not queued: the
// one before it is collected whole, and queued again it gives what it should.
TEST_F(SamplingQueueFailureTest, AStepThatFailedHalfwayWasNotQueued) {
  auto healthy = Make();
  const std::vector<SampledRows> expected = {RunRows(*healthy, steps_[0]),
                                             RunRows(*healthy, steps_[1]),
                                             RunRows(*healthy, steps_[2])};
  int failures = 0;
  for (bool failed = true; failed;) {
    auto step = Make();
    std::vector<SampledRows> found;
    const auto first = step->Queue(steps_[0]);
    std::unique_ptr<QueuedStep> second;
    cuda::emulator::FailQueueing(failures + 1);
    try {
      second = step->Queue(steps_[1]);
      failed = false;
    } catch (const cuda::DeviceOutOfMemory&) {
      ++failures;
    }
    cuda::emulator::FailQueueing(0);
    found.push_back(first->Collect());
    if (failed) {
      // What the failed step sampled, if it came so far, was taken back.
      auto again = steps_[1];
      again[0].token_id = found[0].rows[0].token_id;
      second = step->Queue(again);
    }
    const auto third = step->Queue(steps_[2]);
    found.push_back(second->Collect());
    found.push_back(third->Collect());
    ASSERT_TRUE(SameSampledRows(found, expected)) << "call " << failures;
  }
  // Both marks, both copies and both graphs can fail.
  EXPECT_EQ(failures, 6);
}

}  // namespace
}  // namespace txl
