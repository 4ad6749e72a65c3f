#pragma once

// The rows of all slots: per layer one tensor [slots, C, d], the row of
// absolute position t at index t mod C (model/memory/ring.h). On the CPU a slot
// takes its memory page by page, when its rows are first written.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "model/memory/ring.h"
#include "model/memory/state_image.h"

namespace txl {

// Thread-compatible. Slots and positions are checked by the caller.
class SlotArena {
 public:
  // `start_rows`: per layer the row [d] that fills a cleared slot. Its dtype
  // and device become the arena's. Slots hold zeros until they are cleared.
  // Throws c10::Error or std::bad_alloc when memory runs out.
  SlotArena(const RingGeometry& ring, int64_t slots,
            std::vector<at::Tensor> start_rows);

  // The ring of one slot: a view [C, d], to be read.
  at::Tensor Rows(int64_t layer, int32_t slot) const;
  // Writes rows [n, d], n <= C, at positions position..position+n-1.
  void Write(int64_t layer, int32_t slot, int64_t position,
             const at::Tensor& rows);
  // Makes the rows of positions [begin, end) zeros in every layer.
  void Erase(int32_t slot, int64_t begin, int64_t end);

  // Every row of the slot becomes its layer's start row.
  void Clear(int32_t slot);
  void Copy(int32_t from, int32_t to);

  // Rows of every layer from position `begin` on, into a tensor [layers, n, d]
  // on the CPU.
  void Read(int32_t slot, int64_t begin, const at::Tensor& rows) const;

  int64_t slots() const { return slots_; }
  int64_t layers() const { return static_cast<int64_t>(rings_.size()); }
  const RingGeometry& ring() const { return ring_; }
  const at::Tensor& start_row(int64_t layer) const {
    return start_rows_[layer];
  }

 private:
  void NoteWritten(int32_t slot, int64_t end);

  RingGeometry ring_;
  int64_t slots_;
  std::vector<at::Tensor> start_rows_;
  // Per slot: from this index on all rows are the start rows.
  std::vector<int64_t> written_;
  std::vector<at::Tensor> rings_;  // per layer [slots, C, d]
};

}  // namespace txl
