#include "model/torch/slot_arena.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "model/base/host_memory.h"

namespace txl {
namespace {

// Calls visit(index, offset, count) for the runs of consecutive ring indices
// that positions [begin, begin + count) occupy: at most two.
template <typename Visit>
void ForEachRun(const RingGeometry& ring, int64_t begin, int64_t count,
                const Visit& visit) {
  int64_t offset = 0;
  while (offset < count) {
    const int64_t index = ring.IndexOf(begin + offset);
    const int64_t run = std::min(count - offset, ring.capacity() - index);
    visit(index, offset, run);
    offset += run;
  }
}

// Pages that hold nothing but zeros take no memory on the CPU.
at::Tensor Zeros(at::IntArrayRef sizes, const at::TensorOptions& options) {
  if (!options.device().is_cpu()) return at::zeros(sizes, options);
  const size_t bytes =
      c10::multiply_integers(sizes) * options.dtype().itemsize();
  return at::from_blob(
      MapPages(bytes, /*huge=*/false), sizes,
      [bytes](void* memory) { UnmapPages(memory, bytes); }, options);
}

}  // namespace

SlotArena::SlotArena(const RingGeometry& ring, int64_t slots,
                     std::vector<at::Tensor> start_rows)
    : ring_(ring), slots_(slots), start_rows_(std::move(start_rows)) {
  bool zeros = true;
  for (const at::Tensor& start : start_rows_) {
    rings_.push_back(
        Zeros({slots, ring.capacity(), start.size(0)}, start.options()));
    zeros = zeros && !start.any().item<bool>();
  }
  written_.assign(slots, zeros ? 0 : ring.capacity());
}

void SlotArena::NoteWritten(int32_t slot, int64_t end) {
  written_[slot] = std::max(written_[slot], end);
}

at::Tensor SlotArena::Rows(int64_t layer, int32_t slot) const {
  return rings_[layer].select(0, slot);
}

void SlotArena::Write(int64_t layer, int32_t slot, int64_t position,
                      const at::Tensor& rows) {
  const at::Tensor ring = Rows(layer, slot);
  ForEachRun(
      ring_, position, rows.size(0),
      [&](int64_t index, int64_t offset, int64_t count) {
        ring.narrow(0, index, count).copy_(rows.narrow(0, offset, count));
        NoteWritten(slot, index + count);
      });
}

void SlotArena::Erase(int32_t slot, int64_t begin, int64_t end) {
  for (int64_t layer = 0; layer < layers(); ++layer) {
    const at::Tensor ring = Rows(layer, slot);
    ForEachRun(ring_, begin, end - begin,
               [&](int64_t index, int64_t, int64_t count) {
                 ring.narrow(0, index, count).zero_();
                 NoteWritten(slot, index + count);
               });
  }
}

void SlotArena::Clear(int32_t slot) {
  for (int64_t layer = 0; layer < layers(); ++layer) {
    Rows(layer, slot).narrow(0, 0, written_[slot]).copy_(start_rows_[layer]);
  }
  written_[slot] = 0;
}

void SlotArena::Copy(int32_t from, int32_t to) {
  if (from == to) return;
  const int64_t rows = std::max(written_[from], written_[to]);
  for (int64_t layer = 0; layer < layers(); ++layer) {
    Rows(layer, to)
        .narrow(0, 0, rows)
        .copy_(Rows(layer, from).narrow(0, 0, rows));
  }
  written_[to] = written_[from];
}

void SlotArena::Read(int32_t slot, int64_t begin,
                     const at::Tensor& rows) const {
  for (int64_t layer = 0; layer < layers(); ++layer) {
    const at::Tensor ring = Rows(layer, slot);
    ForEachRun(ring_, begin, rows.size(1),
               [&](int64_t index, int64_t offset, int64_t count) {
                 rows[layer]
                     .narrow(0, offset, count)
                     .copy_(ring.narrow(0, index, count));
               });
  }
}

}  // namespace txl
