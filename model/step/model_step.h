#pragma once

// One step of the serving engine: rows of many sessions at different positions
// through all layers in one batch. Implementations differ in device and form;
// the engine knows only this.
//
// The order of calls for a session that is fed a prompt and one token more:
//
//   step->Clear(slot);                      // or Import(slot, image)
//   const std::vector<int32_t> prompt = {4, 8, 15};
//   const std::vector<int32_t> last = {2};  // its distribution is wanted
//   const StepSegment fed = {slot, 0, prompt, last};
//   NextTokenDistribution& next = *step->Run({&fed, 1})[0];
//   const std::vector<int32_t> token = {Best(next.Words())};
//   const std::vector<int32_t> first = {0};
//   const StepSegment more = {slot, 3, token, first};
//   step->Run({&more, 1});                  // `next` is gone
//   const StateImage image = step->Export(slot, 4);

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/config/model_config.h"
#include "model/memory/ring.h"
#include "model/memory/state_image.h"
#include "model/sampling/distribution.h"

namespace txl {

// Consecutive tokens of one slot. Segments of one Run name different slots.
struct StepSegment {
  int32_t slot = 0;
  int64_t position = 0;              // absolute position of tokens[0]
  absl::Span<const int32_t> tokens;  // 1..spare ids in [0, V)
  // Rows (indices into tokens, ascending) whose log-probabilities are wanted.
  absl::Span<const int32_t> outputs;
  // For a model with beats(): BeatCounter::ticks before each token. Empty means
  // zeros. Other models ignore it.
  absl::Span<const int32_t> ticks = {};
};

// Cluster of the distribution with index `row` in Run's result.
struct ClusterOfRow {
  int64_t row = 0;
  size_t cluster = 0;
};

// Thread-compatible: one thread at a time. Slots, positions and token ids are
// checked by the caller. May throw what its device throws: c10::Error,
// std::bad_alloc, cuda::DeviceError; the engine catches.
class ModelStep {
 public:
  virtual ~ModelStep() = default;

  // Feeds every segment and writes its rows at their positions. Returns the
  // distributions that follow the wanted rows, in order; valid until the next
  // call.
  virtual absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) = 0;

  // The caller is about to look at the words of these clusters of the last
  // Run's distributions: reads each cluster's weights once for all of them.
  // Changes no number. Does nothing by default.
  virtual void EvaluateClusters(absl::Span<const ClusterOfRow> /*clusters*/) {}

  // Fills the slot with start rows: zeros, or what the zero start stores.
  virtual void Clear(int32_t slot) = 0;
  virtual void Copy(int32_t from, int32_t to) = 0;
  // The newest rows before `position`: RowsBefore(position) of them, `most` at
  // most. Import takes images of all rows only.
  virtual StateImage Export(int32_t slot, int64_t position,
                            int64_t most) const = 0;
  StateImage Export(int32_t slot, int64_t position) const {
    return Export(slot, position, ring().mem_len);
  }
  // Replaces the whole slot. Errors as CheckStateImage; the slot is then as it
  // was.
  virtual absl::Status Import(int32_t slot, const StateImage& image) = 0;
  // Imports an image of the same model that another step made. Its kernel and
  // row_dtype may differ, and its checksum is not read. Its numbers are widened
  // or rounded to this step's. After an error the slot may be cleared. Most
  // steps do not implement it.
  virtual absl::Status ImportForeign(int32_t /*slot*/,
                                     const StateImage& /*image*/) {
    return absl::UnimplementedError("images of other steps are not taken");
  }
  // Computes what derives from the next `rows` stored rows of an imported
  // state. Run computes what is left when it first needs it; who wants no step
  // to wait for that calls this before. Does nothing by default.
  virtual void Derive(int32_t /*slot*/, int64_t /*rows*/) {}
  // Whether there is something to derive.
  virtual bool derives() const { return false; }

  // Whether a row's bits depend on its session's tokens alone, neither on how
  // they were cut into calls nor on the other segments of one.
  virtual bool depends_on_no_cut() const { return false; }

  // What is to be counted for StepSegment::ticks; nothing for most models.
  virtual std::optional<BeatPositions> beats() const { return std::nullopt; }

  virtual const RingGeometry& ring() const = 0;
  virtual const StateIdentity& identity() const = 0;
  virtual int64_t BytesPerSlot() const = 0;
};

// What every serving step says and checks in the same words.

// The options that every step has. Errors: InvalidArgument naming the option.
inline absl::Status CheckSlots(int64_t slots, int64_t spare_rows) {
  if (slots < 1) {
    return absl::InvalidArgumentError("slots: must be at least 1");
  }
  if (spare_rows < 8) {
    return absl::InvalidArgumentError("spare_rows: must be at least 8");
  }
  return absl::OkStatus();
}

// The ring of a served model with `spare` rows beyond its memory.
inline RingGeometry ServingRing(const ModelConfig& config, int64_t spare) {
  RingGeometry ring;
  ring.mem_len = config.mem_len;
  ring.spare = spare;
  ring.window = config.serving_window();
  ring.zero_start = config.mem_init == MemoryInit::kZeros;
  return ring;
}

// Identity of its states, but for row_dtype and kernel, which the step knows.
inline StateIdentity ServingIdentity(const ModelConfig& config,
                                     const std::string& fingerprint) {
  StateIdentity identity;
  identity.fingerprint = fingerprint;
  identity.window = config.serving_window();
  identity.mem_len = config.mem_len;
  identity.d_model = config.d_model;
  identity.n_layer = config.n_layer;
  identity.zero_start = config.mem_init == MemoryInit::kZeros;
  return identity;
}

// Where the bins of the model's adaptive softmax end; one bin for a plain one.
inline VocabularyBins BinsOf(const ModelConfig& config) {
  VocabularyBins bins{config.cutoffs};
  bins.ends.push_back(config.vocab_size);
  return bins;
}

}  // namespace txl
