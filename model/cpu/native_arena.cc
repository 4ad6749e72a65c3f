#include "model/cpu/native_arena.h"

#include <algorithm>

#include "model/cpu/packed_matrix.h"

namespace txl {
namespace {

// Bytes of one layer of a slot: keys, values, then stored rows.
int64_t KeyBytes(const RingGeometry& ring, const NativeShape& shape) {
  if (shape.form == AttentionForm::kAbsorbed) return 0;
  return shape.heads * shape.head_width * ring.capacity() *
         NumberBytes(shape.derived);
}
int64_t ValueBytes(const RingGeometry& ring, const NativeShape& shape) {
  if (shape.form == AttentionForm::kAbsorbed) return 0;
  return shape.heads * shape.value_stride() * ring.capacity() *
         NumberBytes(shape.derived);
}
int64_t RowsBytes(const RingGeometry& ring, const NativeShape& shape) {
  constexpr int64_t kLine = AlignedBuffer<uint8_t>::kAlignment;
  const int64_t stride = RoundUp(shape.model_width, kColumnGroup);
  return RoundUp(ring.capacity() * stride * NumberBytes(shape.memory), kLine);
}

}  // namespace

RingGeometry NativeRing(RingGeometry ring) {
  ring.spare = RoundUp(ring.capacity(), kPanel) - ring.mem_len;
  return ring;
}

int64_t NativeSlotBytes(const RingGeometry& ring, const NativeShape& shape) {
  return shape.layers * (KeyBytes(ring, shape) + ValueBytes(ring, shape) +
                         RowsBytes(ring, shape));
}

NativeArena::NativeArena(const RingGeometry& ring, const NativeShape& shape,
                         int64_t slots)
    : ring_(ring), shape_(shape) {
  for (int64_t slot = 0; slot < slots; ++slot) {
    slots_.emplace_back(shape_.layers * LayerBytes());
  }
}

int64_t NativeArena::LayerBytes() const {
  return NativeSlotBytes(ring_, shape_) / shape_.layers;
}

int64_t NativeArena::bytes_per_slot() const {
  return NativeSlotBytes(ring_, shape_);
}

int64_t NativeArena::row_bytes() const {
  return shape_.model_width * NumberBytes(shape_.memory);
}

uint8_t* NativeArena::Row(int32_t slot, int64_t layer, int64_t position) {
  return slots_[slot].data() + layer * LayerBytes() + KeyBytes(ring_, shape_) +
         ValueBytes(ring_, shape_) +
         ring_.IndexOf(position) * row_stride() * NumberBytes(shape_.memory);
}

const uint8_t* NativeArena::Row(int32_t slot, int64_t layer,
                                int64_t position) const {
  return const_cast<NativeArena*>(this)->Row(slot, layer, position);
}

uint8_t* NativeArena::KeyTile(int32_t slot, int64_t layer, int64_t head,
                              int64_t position) {
  const int64_t tile_bytes =
      shape_.head_width * kPanel * NumberBytes(shape_.derived);
  const int64_t tiles = ring_.capacity() / kPanel;
  return slots_[slot].data() + layer * LayerBytes() +
         (head * tiles + ring_.IndexOf(position) / kPanel) * tile_bytes;
}

uint8_t* NativeArena::Value(int32_t slot, int64_t layer, int64_t head,
                            int64_t position) {
  return slots_[slot].data() + layer * LayerBytes() + KeyBytes(ring_, shape_) +
         (head * ring_.capacity() + ring_.IndexOf(position)) *
             shape_.value_stride() * NumberBytes(shape_.derived);
}

void NativeArena::WriteDerived(int32_t slot, int64_t layer, int64_t position,
                               const float* keys, const float* values) {
  const int64_t width = shape_.head_width;
  const int64_t bytes = NumberBytes(shape_.derived);
  const int64_t lane = ring_.IndexOf(position) % kPanel;
  for (int64_t head = 0; head < shape_.heads; ++head) {
    uint8_t* tile = KeyTile(slot, layer, head, position) + lane * bytes;
    for (int64_t k = 0; k < width; k += kColumnGroup) {
      float narrow[kColumnGroup];  // room for any format
      const int64_t count = std::min(kColumnGroup, width - k);
      NarrowRow(keys + head * width + k, count, shape_.derived, narrow);
      SpreadNumbers(narrow, shape_.derived, count, kPanel,
                    tile + k * kPanel * bytes);
    }
    NarrowRow(values + head * width, width, shape_.derived,
              Value(slot, layer, head, position));
  }
}

void NativeArena::Copy(int32_t from, int32_t to) {
  std::copy_n(slots_[from].data(), slots_[from].size(), slots_[to].data());
}

}  // namespace txl
