#pragma once

// The serving step on a CUDA device that samples there. A step is two graphs,
// launched one behind the other without a word from the host: from tokens
// (sampled ones are read on the device) through all layers, and from the wanted
// rows to tokens. Its input and its results are copied around them, by way of
// pinned memory that two steps take turns with. States cross the bus on streams
// of their own (state_lanes.h).
//
// Bits. The same sequence of calls gives the same bits on the same kind of
// device; moving stored state is bit-exact. How many rows run in a step, and
// how many of them are wanted, decides how products and sums are cut, and so
// the last bits of the numbers; which rows need a cluster does not.
//
// The same source runs on the emulated device (device/runtime.h), for tests.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "model/config/model_config.h"
#include "model/cuda/step/cuda_step_options.h"
#include "model/sampling/token_kinds.h"
#include "model/step/sampling_step.h"

namespace txl {

struct Weights;

struct CudaSamplingOptions {
  // Device memory for log-probabilities of the whole vocabulary, and what goes
  // with them. A step with more wanted rows than it holds evaluates them part
  // by part, and reads the weights of the words for every part; 16 rows are
  // always there. (262,144 words take 1.1 MB a row.)
  int64_t words_bytes = int64_t{256} << 20;
  // The model's kinds of tokens; null: it has none.
  std::shared_ptr<const TokenKinds> kinds = nullptr;
};

// States that may be on their way at once (Export that was not taken, Import
// into a slot that was not used since); one more waits for the oldest.
inline constexpr int kStatesOnTheirWay = 4;

// Errors and exceptions as CreateCudaStep; InvalidArgument for a vocabulary of
// more clusters than the device samples from (16).
absl::StatusOr<std::unique_ptr<SamplingStep>> CreateCudaSamplingStep(
    const ModelConfig& config, const Weights& weights,
    const CudaStepOptions& options, const CudaSamplingOptions& sampling = {});

// Device memory before anything is allocated.
struct CudaSamplingBytes {
  int64_t slot = 0;  // of one slot: BytesPerSlot
  // What all slots share besides weights and activations: words, states on
  // their way.
  int64_t shared = 0;
};
CudaSamplingBytes CudaSamplingStepBytes(
    const ModelConfig& config, const CudaStepOptions& options,
    const CudaSamplingOptions& sampling = {});

}  // namespace txl
