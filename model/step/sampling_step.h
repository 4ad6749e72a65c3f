#pragma once

// What a runner of steps queues: a step that samples. On a device the host
// prepares the next one, and reads the last one's tokens, while the device
// computes. ModelStep (model_step.h) is the plain form, which hands out
// distributions; sampling_on_host.h makes one of these of it.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/memory/ring.h"
#include "model/memory/state_image.h"
#include "model/sampling/distribution.h"
#include "model/sampling/sampler.h"
#include "model/sampling/sampling_params.h"
#include "model/step/step_row.h"

namespace txl {

struct SampledRows {
  std::vector<RowResult> rows;  // as they were queued
  double device_seconds = 0;    // from the step's first work to its last
  // Per cluster: rows for which its words were evaluated.
  std::vector<int64_t> evaluated;
};

// A step that is queued.
class QueuedStep {
 public:
  virtual ~QueuedStep() = default;
  // Waits for it. Once, in the order of queueing; from any one thread. The step
  // counts as collected also when this throws, as SamplingStep may.
  virtual SampledRows Collect() = 0;
};

// A state on its way from the device.
class StateTransfer {
 public:
  virtual ~StateTransfer() = default;
  // Waits for it. Once; from any one thread. May throw as SamplingStep.
  virtual StateImage Take() = 0;
};

// A state on its way to its slot.
class StateArrival {
 public:
  virtual ~StateArrival() = default;
  // Brings it to the device and waits for it there, or says again how that
  // ended. From any thread; the first use of the slot brings it too.
  // Errors as CheckStateImage, and InvalidArgument for another number of rows
  // than an export gives: the slot is as it was. May throw as SamplingStep.
  virtual absl::Status Bring() = 0;
};

// All calls from one thread, except that QueuedStep::Collect,
// StateTransfer::Take and StateArrival::Bring may come from other ones. What is
// called takes effect in the order of the calls, without waiting for the device
// unless it says so. Slots, positions, ids and parameters are checked by the
// caller. May throw std::bad_alloc and cuda::DeviceError; after the latter the
// step is of no further use, unless it was about memory.
class SamplingStep {
 public:
  // Steps that may be queued and not collected.
  static constexpr int kDepth = 2;
  // Most probable ids that a row can report, and logprob_ids as many.
  static constexpr int32_t kMostTopLogprobs = 20;

  virtual ~SamplingStep() = default;

  // Whether rows with these parameters can be drawn on the device.
  virtual bool CanSample(const SamplingParams& params,
                         int64_t banned_ids) const = 0;
  // How the slot's rows are sampled from now on; context.position is the first
  // that the banned ids do not hold for. Forgets the last sampled token.
  // REQUIRES: CanSample.
  virtual void Configure(int32_t slot, const SamplingParams& params,
                         const SampleContext& context) = 0;

  // REQUIRES: 1..max_rows rows, fewer than kDepth steps not collected; slots of
  // rows that sample were configured; at most kMostTopLogprobs alternatives,
  // and at most that many logprob_ids. Nothing is queued when it throws.
  virtual std::unique_ptr<QueuedStep> Queue(absl::Span<const StepRow> rows) = 0;

  // ModelStep's. Clear, Copy and Import forget the last sampled token of the
  // slot that they write, and leave how it samples.
  virtual void Clear(int32_t slot) = 0;
  virtual void Copy(int32_t from, int32_t to) = 0;
  // The slot is the image's for all later calls, unless that is refused, but
  // steps of other slots run on while it is brought. REQUIRES: there is an
  // image.
  virtual std::unique_ptr<StateArrival> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) = 0;
  // Takes the slot as the calls so far leave it; what is called later does not
  // change it. Steps of other slots run on meanwhile.
  virtual std::unique_ptr<StateTransfer> Export(int32_t slot,
                                                int64_t position) = 0;

  // Whether rows may feed guesses; a rejected row leaves its slot as it was.
  virtual bool verifies_guesses() const { return false; }
  // Whether kDerive rows have something to do; else none is queued.
  virtual bool derives() const { return false; }

  virtual const RingGeometry& ring() const = 0;
  virtual const StateIdentity& identity() const = 0;
  virtual int64_t BytesPerSlot() const = 0;
};

}  // namespace txl
