#include "model/cpu/native_arena.h"

#include <algorithm>

namespace txl {
namespace {

// Numbers of one layer of a slot: rows, keys, values.
int64_t RowNumbers(const RingGeometry& ring, const NativeShape& shape) {
  return ring.capacity() * shape.model_width;
}
int64_t KeyNumbers(const RingGeometry& ring, const NativeShape& shape) {
  return shape.heads * shape.head_width * ring.capacity();
}
int64_t ValueNumbers(const RingGeometry& ring, const NativeShape& shape) {
  return shape.heads * shape.value_stride() * ring.capacity();
}

}  // namespace

RingGeometry NativeRing(RingGeometry ring) {
  ring.spare = RoundUp(ring.capacity(), kPanel) - ring.mem_len;
  return ring;
}

int64_t NativeSlotBytes(const RingGeometry& ring, const NativeShape& shape) {
  return shape.layers * int64_t{sizeof(float)} *
         (RoundUp(RowNumbers(ring, shape), kPanel) + KeyNumbers(ring, shape) +
          ValueNumbers(ring, shape));
}

NativeArena::NativeArena(const RingGeometry& ring, const NativeShape& shape,
                         int64_t slots)
    : ring_(ring), shape_(shape) {
  for (int64_t slot = 0; slot < slots; ++slot) {
    slots_.emplace_back(shape_.layers * LayerNumbers());
  }
}

int64_t NativeArena::LayerNumbers() const {
  return RoundUp(RowNumbers(ring_, shape_), kPanel) +
         KeyNumbers(ring_, shape_) + ValueNumbers(ring_, shape_);
}

int64_t NativeArena::bytes_per_slot() const {
  return NativeSlotBytes(ring_, shape_);
}

float* NativeArena::Row(int32_t slot, int64_t layer, int64_t position) {
  return slots_[slot].data() + layer * LayerNumbers() +
         KeyNumbers(ring_, shape_) + ValueNumbers(ring_, shape_) +
         ring_.IndexOf(position) * shape_.model_width;
}

const float* NativeArena::Row(int32_t slot, int64_t layer,
                              int64_t position) const {
  return const_cast<NativeArena*>(this)->Row(slot, layer, position);
}

float* NativeArena::KeyTile(int32_t slot, int64_t layer, int64_t head,
                            int64_t position) {
  const int64_t tile_numbers = shape_.head_width * kPanel;
  const int64_t tiles = ring_.capacity() / kPanel;
  return slots_[slot].data() + layer * LayerNumbers() +
         (head * tiles + ring_.IndexOf(position) / kPanel) * tile_numbers;
}

float* NativeArena::Value(int32_t slot, int64_t layer, int64_t head,
                          int64_t position) {
  return slots_[slot].data() + layer * LayerNumbers() +
         KeyNumbers(ring_, shape_) +
         (head * ring_.capacity() + ring_.IndexOf(position)) *
             shape_.value_stride();
}

void NativeArena::WriteDerived(int32_t slot, int64_t layer, int64_t position,
                               const float* keys, const float* values) {
  const int64_t width = shape_.head_width;
  const int64_t lane = ring_.IndexOf(position) % kPanel;
  for (int64_t head = 0; head < shape_.heads; ++head) {
    float* tile = KeyTile(slot, layer, head, position) + lane;
    for (int64_t k = 0; k < width; ++k) {
      tile[k * kPanel] = keys[head * width + k];
    }
    std::copy_n(values + head * width, width,
                Value(slot, layer, head, position));
  }
}

void NativeArena::Copy(int32_t from, int32_t to) {
  std::copy_n(slots_[from].data(), slots_[from].size(), slots_[to].data());
}

}  // namespace txl
