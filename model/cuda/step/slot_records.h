#pragma once

// How the slots sample: their records on the device (kernels/sampling_slots.h),
// written by way of pinned memory.

#include <cstdint>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/sampling_slots.h"
#include "model/sampling/sampler.h"
#include "model/sampling/sampling_params.h"

namespace txl::cuda {

// Thread-compatible; work is queued on `stream`, which outlives it.
class SlotRecords {
 public:
  // Every slot has defaults. `staged`: records that may be on their way, >= 1;
  // one more waits for the oldest of them.
  SlotRecords(int64_t slots, const SamplingLimits& limits, int staged,
              Stream& stream);

  // SamplingStep::Configure. REQUIRES: SampledOnDevice.
  void Configure(int32_t slot, const SamplingParams& params,
                 const SampleContext& context);
  // The slot sampled nothing.
  void ForgetLast(int32_t slot);

  // The records on the device.
  const SamplingSlots& slots() const { return slots_; }

 private:
  // Writes a staged record and queues its copy to the device.
  void Write(int32_t slot, const SamplingParams& params,
             const SlotContext& context);

  Stream& stream_;
  SamplingSlots slots_;
  SamplingSlots staged_;  // on the host
  Array<unsigned char> records_, staged_records_;
  std::vector<Event> copied_;  // of staged records
  int64_t written_ = 0;
};

}  // namespace txl::cuda
