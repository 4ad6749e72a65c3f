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

  // The d numbers of the stored rows of positions first..last-1 of all layers,
  // [layers, last - first, d], to and from host memory. Done on return.
  void Read(int32_t slot, int64_t first, int64_t last, uint8_t* to);
  void Write(int32_t slot, int64_t first, int64_t last, const uint8_t* from);

  const RingGeometry& ring() const { return ring_; }
  int64_t row_bytes() const {  // of the d numbers
    return shape_.width * static_cast<int64_t>(sizeof(M));
  }
  int64_t bytes_per_slot() const { return layers_numbers() * sizeof(M); }

 private:
  // Rows that follow each other in a ring.
  struct Run {
    M* rows = nullptr;
    int64_t count = 0;
  };
  // Those of positions first..last-1, oldest first: one run or two.
  std::vector<Run> Runs(int32_t slot, int layer, int64_t first,
                        int64_t last) const;

  int64_t layer_numbers() const { return ring_.capacity() * shape_.stride; }
  int64_t layers_numbers() const { return shape_.layers * layer_numbers(); }
  M* Slot(int32_t slot) const { return rows_.data() + slot * layers_numbers(); }
  // Room on the host for the stored rows of one layer; two take turns, so that
  // the device copies one while the host has the other.
  M* Staged(int layer) const {
    return staged_.data() + layer % 2 * ring_.mem_len * shape_.stride;
  }

  const RingGeometry ring_;
  const CudaShape shape_;
  Stream& stream_;
  Array<M> rows_;    // [slots, layers, C, stride]
  Array<M> staged_;  // [2, M, stride], on the host
  Event copied_[2];  // of staged_
  // Positions -M..-1, all of slot 0, for FillStart.
  Array<int64_t> start_positions_;
  Array<int32_t> start_slots_;
};

}  // namespace txl::cuda
