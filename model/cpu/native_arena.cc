#include "model/cpu/native_arena.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/cpu/packed_matrix.h"

namespace txl {
namespace {

constexpr int64_t kScaleBytes = sizeof(float);

// A tile's numbers are kPanel times `depth`.
int64_t TileBytes(const NativeShape& shape, int64_t depth) {
  const int64_t scale = shape.derived == NumberFormat::kInt8 ? kScaleBytes : 0;
  return kPanel * (depth * NumberBytes(shape.derived) + scale);
}

// Bytes of one layer of a slot: keys, values, then stored rows.
int64_t KeyBytes(const RingGeometry& ring, const NativeShape& shape) {
  if (shape.form == AttentionForm::kAbsorbed) return 0;
  return shape.heads * ring.capacity() / kPanel *
         TileBytes(shape, shape.key_depth());
}
int64_t ValueBytes(const RingGeometry& ring, const NativeShape& shape) {
  if (shape.form == AttentionForm::kAbsorbed) return 0;
  return shape.heads * ring.capacity() / kPanel *
         TileBytes(shape, shape.value_stride());
}
// Where a row's factor lies: behind whole quads, whose last numbers are zeros.
int64_t FactorOffset(const NativeShape& shape) {
  return RoundUp(shape.model_width, kQuad);
}
int64_t RowStep(const NativeShape& shape) {
  if (shape.memory != NumberFormat::kInt8) {
    return RoundUp(shape.model_width, kColumnGroup);
  }
  return RoundUp(FactorOffset(shape) + int64_t{sizeof(IntegerRow)},
                 kColumnGroup);
}
int64_t RowsBytes(const RingGeometry& ring, const NativeShape& shape) {
  constexpr int64_t kLine = AlignedBuffer<uint8_t>::kAlignment;
  return RoundUp(ring.capacity() * RowStep(shape) * NumberBytes(shape.memory),
                 kLine);
}

// A head's row in whole numbers, a part at a time: call(k, count, numbers).
template <class Call>
float QuantiseParts(const float* x, int64_t width, const Call& call) {
  const float scale = ScaleOf(x, width);
  for (int64_t k = 0; k < width; k += kPanel) {
    const int64_t count = std::min(kPanel, width - k);
    alignas(uint32_t) int8_t numbers[kPanel];
    QuantiseBy(x + k, count, scale, numbers);
    call(k, count, numbers);
  }
  return scale;
}

}  // namespace

int64_t NativeShape::key_depth() const {
  return derived == NumberFormat::kInt8 ? RoundUp(head_width, kQuad)
                                        : head_width;
}

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
    : ring_(ring),
      shape_(shape),
      key_tile_(TileBytes(shape, shape.key_depth())),
      value_tile_(TileBytes(shape, shape.value_stride())),
      layer_(NativeSlotBytes(ring, shape) / shape.layers),
      values_begin_(KeyBytes(ring, shape)),
      rows_begin_(values_begin_ + ValueBytes(ring, shape)),
      slots_(slots),
      bytes_(slots * shape.layers * layer_) {}

int64_t NativeArena::bytes_per_slot() const { return shape_.layers * layer_; }

int64_t NativeArena::row_step() const { return RowStep(shape_); }

uint8_t* NativeArena::Row(int32_t slot, int64_t layer, int64_t position) {
  return Layer(slot, layer) + rows_begin_ +
         ring_.IndexOf(position) * row_step() * NumberBytes(shape_.memory);
}

const uint8_t* NativeArena::Row(int32_t slot, int64_t layer,
                                int64_t position) const {
  return const_cast<NativeArena*>(this)->Row(slot, layer, position);
}

void NativeArena::StoreRow(int32_t slot, int64_t layer, int64_t position,
                           const float* x) {
  uint8_t* row = Row(slot, layer, position);
  if (shape_.memory != NumberFormat::kInt8) {
    return NarrowRow(x, shape_.model_width, shape_.memory, row);
  }
  const IntegerRow factor =
      QuantiseRow(x, shape_.model_width, reinterpret_cast<int8_t*>(row));
  std::memcpy(row + FactorOffset(shape_), &factor, sizeof(factor));
}

void NativeArena::LoadRow(int32_t slot, int64_t layer, int64_t position,
                          float* x) const {
  const uint8_t* row = Row(slot, layer, position);
  if (shape_.memory != NumberFormat::kInt8) {
    return WidenRow(row, shape_.memory, shape_.model_width, x);
  }
  RestoreRow(reinterpret_cast<const int8_t*>(row),
             RowFactor(slot, layer, position)->scale, shape_.model_width, x);
}

const IntegerRow* NativeArena::RowFactor(int32_t slot, int64_t layer,
                                         int64_t position) const {
  static_assert(kColumnGroup % sizeof(IntegerRow) == 0);
  return reinterpret_cast<const IntegerRow*>(Row(slot, layer, position) +
                                             FactorOffset(shape_));
}

int64_t NativeArena::image_row_bytes() const {
  const int64_t scale = shape_.memory == NumberFormat::kInt8 ? kScaleBytes : 0;
  return shape_.model_width * NumberBytes(shape_.memory) + scale;
}

void NativeArena::WriteImageRow(int32_t slot, int64_t layer, int64_t position,
                                uint8_t* to) const {
  const int64_t bytes = shape_.model_width * NumberBytes(shape_.memory);
  std::memcpy(to, Row(slot, layer, position), bytes);
  if (shape_.memory != NumberFormat::kInt8) return;
  const float scale = RowFactor(slot, layer, position)->scale;
  std::memcpy(to + bytes, &scale, sizeof(scale));
}

void NativeArena::ReadImageRow(int32_t slot, int64_t layer, int64_t position,
                               const uint8_t* from) {
  uint8_t* row = Row(slot, layer, position);
  const int64_t bytes = shape_.model_width * NumberBytes(shape_.memory);
  std::memcpy(row, from, bytes);
  if (shape_.memory != NumberFormat::kInt8) return;
  const int8_t* numbers = reinterpret_cast<const int8_t*>(row);
  IntegerRow factor;
  std::memcpy(&factor.scale, from + bytes, sizeof(factor.scale));
  factor.sum = std::accumulate(numbers, numbers + bytes, int32_t{0});
  std::fill(row + bytes, row + FactorOffset(shape_), uint8_t{0});
  std::memcpy(row + FactorOffset(shape_), &factor, sizeof(factor));
}

uint8_t* NativeArena::KeyTile(int32_t slot, int64_t layer, int64_t head,
                              int64_t position) {
  const int64_t tiles = ring_.capacity() / kPanel;
  return Layer(slot, layer) +
         (head * tiles + ring_.IndexOf(position) / kPanel) * key_tile_;
}

const float* NativeArena::KeyScales(int32_t slot, int64_t layer, int64_t head,
                                    int64_t position) {
  return reinterpret_cast<const float*>(KeyTile(slot, layer, head, position) +
                                        kPanel * shape_.key_depth());
}

uint8_t* NativeArena::Value(int32_t slot, int64_t layer, int64_t head,
                            int64_t position) {
  return Layer(slot, layer) + values_begin_ +
         (head * ring_.capacity() + ring_.IndexOf(position)) *
             shape_.value_stride() * NumberBytes(shape_.derived);
}

uint8_t* NativeArena::ValueTile(int32_t slot, int64_t layer, int64_t head,
                                int64_t position) {
  const int64_t tiles = ring_.capacity() / kPanel;
  return Layer(slot, layer) + values_begin_ +
         (head * tiles + ring_.IndexOf(position) / kPanel) * value_tile_;
}

const float* NativeArena::ValueScales(int32_t slot, int64_t layer, int64_t head,
                                      int64_t position) {
  return reinterpret_cast<const float*>(ValueTile(slot, layer, head, position) +
                                        kPanel * shape_.value_stride());
}

void NativeArena::WriteDerived(int32_t slot, int64_t layer, int64_t position,
                               const float* keys, const float* values) {
  if (shape_.derived == NumberFormat::kInt8) {
    return WriteIntegers(slot, layer, position, keys, values);
  }
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

void NativeArena::WriteIntegers(int32_t slot, int64_t layer, int64_t position,
                                const float* keys, const float* values) {
  const int64_t width = shape_.head_width;
  const int64_t stride = shape_.value_stride();
  const int64_t lane = ring_.IndexOf(position) % kPanel;
  for (int64_t head = 0; head < shape_.heads; ++head) {
    uint8_t* tile = KeyTile(slot, layer, head, position);
    float scale =
        QuantiseParts(keys + head * width, width,
                      [&](int64_t k, int64_t count, const int8_t* numbers) {
                        SpreadNumbers(numbers, NumberFormat::kF32,
                                      RoundUp(count, kQuad) / kQuad, kPanel,
                                      tile + k * kPanel + lane * kQuad);
                      });
    std::memcpy(tile + kPanel * shape_.key_depth() + lane * kScaleBytes, &scale,
                kScaleBytes);
    tile = ValueTile(slot, layer, head, position) +
           lane / kQuad * stride * kQuad + lane % kQuad;
    scale = QuantiseParts(values + head * width, width,
                          [&](int64_t k, int64_t count, const int8_t* numbers) {
                            SpreadNumbers(numbers, NumberFormat::kInt8, count,
                                          kQuad, tile + k * kQuad);
                          });
    tile = ValueTile(slot, layer, head, position);
    std::memcpy(tile + kPanel * stride + lane * kScaleBytes, &scale,
                kScaleBytes);
  }
}

void NativeArena::RepeatFirstTile(int32_t slot, int64_t layer) {
  const int64_t tiles = ring_.capacity() / kPanel;
  const auto repeat = [tiles](uint8_t* first, int64_t bytes) {
    for (int64_t tile = 1; tile < tiles; ++tile) {
      std::memcpy(first + tile * bytes, first, static_cast<size_t>(bytes));
    }
  };
  repeat(Row(slot, layer, 0), kPanel * row_step() * NumberBytes(shape_.memory));
  if (shape_.form != AttentionForm::kProjected) return;
  for (int64_t head = 0; head < shape_.heads; ++head) {
    repeat(KeyTile(slot, layer, head, 0), key_tile_);
    repeat(ValueTile(slot, layer, head, 0), value_tile_);
  }
}

void NativeArena::CopyLayer(int32_t from, int32_t to, int64_t layer) {
  std::copy_n(Layer(from, layer), layer_, Layer(to, layer));
}

}  // namespace txl
