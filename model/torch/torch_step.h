#pragma once

// One step of the serving engine with LibTorch: rows of many sessions at
// different positions through all layers in one batch, attention in absorbed
// form on the stored rows themselves (docs/design/step.md).
// CPU and CUDA alike; the plain step and the oracle of faster ones.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/memory/ring.h"
#include "model/memory/state_image.h"
#include "model/step/model_step.h"

namespace txl {

struct TorchStepOptions {
  int64_t slots = 1;        // >= 1, allocated at Create
  int64_t spare_rows = 64;  // S >= 8
  // Rows are padded to multiples of this many before every product, so that a
  // row's arithmetic does not depend on how many others are in the batch.
  int64_t row_tile = 16;
  std::string fingerprint;  // for state images
};

// Thread-compatible: one thread at a time. May throw c10::Error; the engine
// catches.
//
// Bits. The same calls give the same bits, and moving rows (Export, Import,
// Copy) keeps them. What is measured but not promised (float32, AVX-512, the
// WikiText-103 large shape): a row's bits did not depend on the number of
// other sessions in the batch (0 to 31), on its place among them, nor on
// running with one thread or two. They do depend on how a prompt is cut, since
// attention multiplies a segment's rows together; within the tolerances of
// the golden tests.
//
// Rows that are not finite stay in their slot. Feeding their positions again,
// or Clear or Import, takes them away; while they are kept, that slot's later
// rows are not finite either.
class TorchStep final : public ModelStep {
 public:
  // Keeps dtype (float32 or float64) and device of the weights. InvalidArgument
  // names the option that is out of range. Slots are not cleared.
  static absl::StatusOr<std::unique_ptr<TorchStep>> Create(
      ModelConfig config, Weights weights, const TorchStepOptions& options);

  // What Run makes its distributions of: a CPU tensor [sum of outputs, V],
  // contiguous, float32 (float64 for double weights).
  at::Tensor LogProbs(absl::Span<const StepSegment> segments);

  absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) override;
  void Clear(int32_t slot) override;
  void Copy(int32_t from, int32_t to) override;
  using ModelStep::Export;
  StateImage Export(int32_t slot, int64_t position,
                    int64_t most) const override;
  absl::Status Import(int32_t slot, const StateImage& image) override;
  absl::Status ImportForeign(int32_t slot, const StateImage& image) override;

  const RingGeometry& ring() const override;
  const StateIdentity& identity() const override;
  std::optional<BeatPositions> beats() const override;
  int64_t BytesPerSlot() const override;

  ~TorchStep() override;

 private:
  struct Impl;
  explicit TorchStep(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Bytes of one slot before anything is allocated.
int64_t TorchSlotBytes(const ModelConfig& config, int64_t spare_rows,
                       int64_t element_bytes);

}  // namespace txl
