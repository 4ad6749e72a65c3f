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

namespace txl {

// Input token of a row: the one that its slot's last sampling row drew, which
// the host may not know yet.
inline constexpr int32_t kLastSampledToken = -1;
// No token: the row computes what derives from one more stored row of an
// imported state, oldest first. Where the step derives; all rows of a slot are
// such, or none is.
inline constexpr int32_t kNoToken = -2;

enum class RowOutput {
  kNone,
  kSample,  // the token at position + 1, drawn as the slot was configured
  kScore,   // log P(target)
};

// One token through all layers. Rows of one slot stand together, at consecutive
// ascending positions; at most the last of them samples. Where the step
// verifies guesses, others that sample may follow it: such a row feeds a guess
// of what the row before it draws.
struct SamplingRow {
  int32_t slot = 0;
  int64_t position = 0;  // absolute position of the input token
  int32_t token = 0;     // or kNoToken; kLastSampledToken in a slot's first row
  RowOutput output = RowOutput::kNone;
  int32_t target = 0;  // kScore
  // kSample, kScore: alternatives reported, at most kMostTopLogprobs.
  int32_t top_logprobs = 0;
};

enum class SampledStatus {
  kOk,
  kNotFinite,     // a log-probability that was looked at is NaN or +inf
  kNothingLeft,   // no token has a probability above 0
  kUnknownInput,  // kLastSampledToken, but that row failed, or there was none
  kRejected,      // its guess, or one before it, is not what was drawn
};

struct SampledRow {
  SampledStatus status = SampledStatus::kOk;
  int32_t token = -1;  // kSample: drawn; kScore: target
  float logprob = 0;   // of token, in the model's own distribution
  std::vector<TokenLogprob> top_logprobs;  // best first
};

struct SampledRows {
  std::vector<SampledRow> rows;  // as they were queued
  double device_seconds = 0;     // from the step's first work to its last
  // Per cluster: rows for which its words were evaluated.
  std::vector<int64_t> evaluated;
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
  // ended. From any thread; whoever uses the slot first brings it too.
  // Errors as CheckStateImage, and InvalidArgument for another number of rows
  // than an export gives: the slot is as it was. May throw as SamplingStep.
  virtual absl::Status Bring() = 0;
};

// All calls from one thread, except that Collect, StateTransfer::Take and
// StateArrival::Bring may come from other ones. What is called takes effect in
// the order of the calls, without waiting for the device unless it says so.
// Slots, positions, ids and parameters are checked by the caller. May throw
// std::bad_alloc and cuda::DeviceError; after the latter the step is of no
// further use, unless it was about memory.
class SamplingStep {
 public:
  // Steps that may be queued and not collected.
  static constexpr int kDepth = 2;
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
  // rows that sample were configured. Nothing is queued when it throws.
  virtual void Queue(absl::Span<const SamplingRow> rows) = 0;
  // Waits for the oldest step that is not collected, which counts as collected
  // also when this throws.
  virtual SampledRows Collect() = 0;

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
  // Whether rows with kNoToken have something to do.
  virtual bool derives() const { return false; }

  virtual const RingGeometry& ring() const = 0;
  virtual const StateIdentity& identity() const = 0;
  virtual int64_t BytesPerSlot() const = 0;
};

}  // namespace txl
