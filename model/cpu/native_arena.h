#pragma once

// What a slot of the native CPU step holds, per layer: the stored rows (the
// segment memory itself) and, in projected form, a key and a value row per head
// that derive from them (docs/design/step.md).
//
// All lie in rings of C positions, C a multiple of kPanel: keys in tiles of
// kPanel positions that begin at multiples of kPanel of the absolute position,
// so that a query meets the same keys in the same lanes wherever its session
// runs.

#include <cstdint>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/quantise.h"
#include "model/cpu/vector_kernels.h"
#include "model/memory/ring.h"

namespace txl {

struct NativeShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_width = 0;                     // D
  int64_t model_width = 0;                    // d
  NumberFormat memory = NumberFormat::kF32;   // of stored rows
  NumberFormat derived = NumberFormat::kF32;  // of keys and values
  AttentionForm form = AttentionForm::kProjected;
  // Whether scores and values are sums of whole numbers: of int8 keys and
  // values or, in absorbed form, of int8 rows.
  bool integer_attention() const {
    return derived == NumberFormat::kInt8 &&
           (form == AttentionForm::kProjected || memory == NumberFormat::kInt8);
  }
  // Numbers between two value rows.
  int64_t value_stride() const { return RoundUp(head_width, kColumnGroup); }
  // Rows of a key tile: in int8 whole quads.
  int64_t key_depth() const;
};

// `ring` with its spare rows rounded up so that C is a multiple of kPanel.
RingGeometry NativeRing(RingGeometry ring);

// Thread-compatible. Slots, layers and positions are checked by the caller.
class NativeArena {
 public:
  // REQUIRES: ring as NativeRing makes it.
  NativeArena(const RingGeometry& ring, const NativeShape& shape,
              int64_t slots);

  // Stored row of a position in the format of the memory: [row_stride()]
  // numbers, the first d of them its own. Behind these come zeros or, in int8,
  // the row's factor; a reader that goes past d multiplies it by zeros. Rows of
  // following ring indices follow, row_step() numbers apart.
  uint8_t* Row(int32_t slot, int64_t layer, int64_t position);
  const uint8_t* Row(int32_t slot, int64_t layer, int64_t position) const;
  int64_t row_stride() const {
    return RoundUp(shape_.model_width, kColumnGroup);
  }
  int64_t row_step() const;
  // x [d] as the memory keeps it, and back.
  void StoreRow(int32_t slot, int64_t layer, int64_t position, const float* x);
  void LoadRow(int32_t slot, int64_t layer, int64_t position, float* x) const;
  // In int8: the scale of a row's numbers, and their sum. Those of following
  // rows are factor_step() apart.
  const IntegerRow* RowFactor(int32_t slot, int64_t layer,
                              int64_t position) const;
  int64_t factor_step() const {
    return row_step() / int64_t{sizeof(IntegerRow)};
  }
  // A row as images have it: the d numbers and, in int8, their scale.
  int64_t image_row_bytes() const;
  void WriteImageRow(int32_t slot, int64_t layer, int64_t position,
                     uint8_t* to) const;
  void ReadImageRow(int32_t slot, int64_t layer, int64_t position,
                    const uint8_t* from);
  // The rest is there in projected form only.
  //
  // Keys of the tile that holds `position`: [D, kPanel] in the derived format,
  // position p in lane p mod kPanel. In int8 quads, then a scale per position.
  uint8_t* KeyTile(int32_t slot, int64_t layer, int64_t head, int64_t position);
  const float* KeyScales(int32_t slot, int64_t layer, int64_t head,
                         int64_t position);
  // Value row of a position: [value_stride] in the derived format; rows of
  // following ring indices follow. Not in int8.
  uint8_t* Value(int32_t slot, int64_t layer, int64_t head, int64_t position);
  // In int8: values of the tile that holds `position`, in quads of positions,
  // then a scale per position.
  uint8_t* ValueTile(int32_t slot, int64_t layer, int64_t head,
                     int64_t position);
  const float* ValueScales(int32_t slot, int64_t layer, int64_t head,
                           int64_t position);

  // Writes the derived rows of one position: keys and values are [H D].
  void WriteDerived(int32_t slot, int64_t layer, int64_t position,
                    const float* keys, const float* values);
  // Every position of the layer gets what the first tile's has: rows, keys and
  // values of positions [0, kPanel) are repeated.
  void RepeatFirstTile(int32_t slot, int64_t layer);
  void CopyLayer(int32_t from, int32_t to, int64_t layer);

  const RingGeometry& ring() const { return ring_; }
  const NativeShape& shape() const { return shape_; }
  int64_t slots() const { return slots_; }
  int64_t bytes_per_slot() const;

 private:
  uint8_t* Layer(int32_t slot, int64_t layer) {
    return bytes_.data() + (slot * shape_.layers + layer) * layer_;
  }
  void WriteIntegers(int32_t slot, int64_t layer, int64_t position,
                     const float* keys, const float* values);

  const RingGeometry ring_;
  const NativeShape shape_;
  // In bytes: of a tile, of a layer, and where its values and rows begin.
  const int64_t key_tile_, value_tile_, layer_, values_begin_, rows_begin_;
  const int64_t slots_;
  // Holds all slots. A slot of a large buffer gets pages when it is first used.
  AlignedBuffer<uint8_t> bytes_;
};

// Bytes of one slot before anything is allocated.
int64_t NativeSlotBytes(const RingGeometry& ring, const NativeShape& shape);

}  // namespace txl
