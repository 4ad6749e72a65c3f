#pragma once

// The segment memories of all slots on the device: per slot and layer a ring
// of stored rows (kernels/rows.h), in one allocation.

#include <cstdint>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"
#include "model/cuda/step/cuda_shape.h"
#include "model/memory/ring.h"

namespace txl::cuda {

// `ring` with its spare rows rounded up so that C is a multiple of kRingTile.
RingGeometry CudaRing(RingGeometry ring);

// Bytes of one slot before anything is allocated; a number takes
// `number_bytes`. `ring` as CudaRing makes it.
int64_t CudaSlotBytes(const RingGeometry& ring, const CudaShape& shape,
                      int64_t number_bytes);

// M: float, Bf16 or F16. Thread-compatible; work is queued on `stream`, which
// outlives the arena. Slots and positions are checked by the caller. Throws
// what device/runtime.h throws.
template <typename M>
class CudaArena {
 public:
  // All slots are zeros.
  CudaArena(const RingGeometry& ring, const CudaShape& shape, int64_t slots,
            Stream& stream);

  // Rings of all slots.
  Rings<M> Layer(int layer) const;

  // Every row of the slot becomes zeros.
  void Clear(int32_t slot);
  // The rows of all positions before 0 become `row` [stride], on the device.
  void FillStart(int32_t slot, int layer, const float* row);
  void Copy(int32_t from, int32_t to);

  // The stored rows of positions first..last-1 of all layers, at most C of
  // them, to and from an array [layers, last - first, stride] on the device.
  void Pack(int32_t slot, int64_t first, int64_t last, M* to);
  void Unpack(int32_t slot, int64_t first, int64_t last, const M* from);

  const RingGeometry& ring() const { return ring_; }
  const CudaShape& shape() const { return shape_; }
  int64_t bytes_per_slot() const { return layers_numbers() * sizeof(M); }

 private:
  // Rows that follow each other in the rings of all layers.
  struct Run {
    int64_t index = 0;  // of the first, in a ring
    int64_t count = 0;
  };
  // The rows of positions first..last-1, oldest first: one run or two.
  std::vector<Run> Runs(int64_t first, int64_t last) const;

  int64_t layer_numbers() const { return ring_.capacity() * shape_.stride; }
  int64_t layers_numbers() const { return shape_.layers * layer_numbers(); }
  M* Slot(int32_t slot) const { return rows_.data() + slot * layers_numbers(); }

  const RingGeometry ring_;
  const CudaShape shape_;
  Stream& stream_;
  Array<M> rows_;  // [slots, layers, C, stride]
  // Positions -M..-1, all of slot 0, for FillStart.
  Array<int64_t> start_positions_;
  Array<int32_t> start_slots_;
};

}  // namespace txl::cuda
