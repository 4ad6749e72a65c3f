#include "model/torch/slot_arena.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

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

}  // namespace

SlotArena::SlotArena(const RingGeometry& ring, int64_t slots,
                     std::vector<at::Tensor> start_rows)
    : ring_(ring), slots_(slots), start_rows_(std::move(start_rows)) {
  for (const at::Tensor& start : start_rows_) {
    rings_.push_back(
        at::zeros({slots, ring.capacity(), start.size(0)}, start.options()));
  }
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
      });
}

void SlotArena::Erase(int32_t slot, int64_t begin, int64_t end) {
  for (int64_t layer = 0; layer < layers(); ++layer) {
    const at::Tensor ring = Rows(layer, slot);
    ForEachRun(ring_, begin, end - begin,
               [&](int64_t index, int64_t, int64_t count) {
                 ring.narrow(0, index, count).zero_();
               });
  }
}

void SlotArena::Clear(int32_t slot) {
  for (int64_t layer = 0; layer < layers(); ++layer) {
    Rows(layer, slot).copy_(start_rows_[layer]);
  }
}

void SlotArena::Copy(int32_t from, int32_t to) {
  if (from == to) return;
  for (int64_t layer = 0; layer < layers(); ++layer) {
    Rows(layer, to).copy_(Rows(layer, from));
  }
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

void SlotArena::WriteAll(int32_t slot, int64_t begin, const at::Tensor& rows) {
  for (int64_t layer = 0; layer < layers(); ++layer) {
    Write(layer, slot, begin, rows[layer]);
  }
}

}  // namespace txl
