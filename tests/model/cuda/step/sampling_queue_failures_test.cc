// A device that runs out of memory while a step is queued. Only the emulated
// one can be told to.

#include <gtest/gtest.h>

#include <vector>

#include "model/cuda/device/runtime.h"
#include "tests/model/cuda/emulator/emulated_block.h"
#include "tests/model/cuda/step/sampling_driver.h"

namespace txl {
namespace {

using Steps = std::vector<std::vector<SamplingRow>>;

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
      {Sample(0, 1, kLastSampledToken), Score(1, 1, 9, 4)},
      {Sample(0, 2, kLastSampledToken), Score(1, 2, 4, 30)},
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
    step->Queue(steps_[0]);
    cuda::emulator::FailQueueing(failures + 1);
    try {
      step->Queue(steps_[1]);
      failed = false;
    } catch (const cuda::DeviceOutOfMemory&) {
      ++failures;
    }
    cuda::emulator::FailQueueing(0);
    found.push_back(step->Collect());
    if (failed) {
      // What the failed step sampled, if it came so far, was taken back.
      auto again = steps_[1];
      again[0].token = found[0].rows[0].token;
      step->Queue(again);
    }
    step->Queue(steps_[2]);
    found.push_back(step->Collect());
    found.push_back(step->Collect());
    ASSERT_TRUE(SameSampledRows(found, expected)) << "call " << failures;
  }
  // Both marks, both copies and both graphs can fail.
  EXPECT_EQ(failures, 6);
}

}  // namespace
}  // namespace txl
