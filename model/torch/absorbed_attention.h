#pragma once

// Attention in absorbed form (docs/design/step.md): with
// stored rows c_j at distance delta from the query and head n,
//
//   score_j = D^-1/2 [ (Wk_n^T (q_n + u_n)) . c_j + (q_n + v_n) . (Wr_n R) ]
//   out_n   = Wv_n sum_j softmax(score)_j c_j + bv_n
//
// so that neither keys nor values are ever formed. The biases on k and r add
// the same to every key's score and drop out of the softmax. With learned
// tables the second term is D^-1/2 [ q_n . T_n + S_n ] of that distance.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/memory/ring.h"
#include "model/torch/slot_arena.h"

namespace txl {

// What a layer's positional scores come from; made once from the weights.
// Column k is distance k; farther distances use the last column.
struct PositionTable {
  at::Tensor keys;  // [H, D, columns]: Wr_n R, or T_n
  at::Tensor bias;  // [H, columns]: D^-1/2 S_n; undefined for sinusoids
};

// Tables of every layer, for distances 0..window-1.
std::vector<PositionTable> MakePositionTables(const ModelConfig& config,
                                              const Weights& weights);

// Consecutive rows of a batch that belong to one slot, and what they see.
struct SegmentView {
  int32_t slot = 0;
  int64_t position = 0;   // absolute position of the first row
  int64_t first_row = 0;  // in the batch
  int64_t rows = 0;
  int64_t keys = 0;    // leading ring indices that can hold a visible row
  at::Tensor columns;  // [rows, 1, keys] int64: column of the position table
  at::Tensor mask;     // [rows, 1, keys]: 0, or -inf where not visible
};

// `place` (slot, position, first_row, rows) completed by what the ring's
// geometry says. `like` gives dtype and device of the mask.
SegmentView MakeSegmentView(const RingGeometry& ring, const SegmentView& place,
                            int64_t table_columns, const at::Tensor& like);

struct AttentionShape {
  int64_t heads = 0;
  int64_t head_width = 0;
  int64_t row_tile = 0;
};

// What a layer has stored of every slot.
struct StoredRows {
  const SlotArena& arena;
  int64_t layer = 0;
};

// Attention of one layer before the residual: Wo concat_n(out_n) + bo.
// x [rows, d] (rows a multiple of row_tile): the layer's input, normalised for
// pre-LN, already written into the rings. Rows in no segment give bo.
at::Tensor AbsorbedAttention(const AttentionShape& shape,
                             const LayerWeights& weights,
                             const PositionTable& table, const at::Tensor& x,
                             const std::vector<SegmentView>& segments,
                             const StoredRows& stored);

// Products over rows, computed in tiles of a fixed number of rows.
//
// Libraries choose their matrix kernels, and with them the order of a sum, by
// the shape of the product. With every product cut into tiles of one shape a
// row's result does not depend on how many other rows are in the batch.
// What was measured of it stands in torch_step.h.

// `rows` rounded up to a multiple of `tile`.
int64_t PaddedRows(int64_t rows, int64_t tile);

// x [n, k] with zero rows appended: [PaddedRows(n), k]. x itself when nothing
// is to be appended.
at::Tensor PadRows(const at::Tensor& x, int64_t tile);

// x w^T + b. x [n, in], n a multiple of tile; w [out, in]; b [out] or
// undefined. Returns [n, out].
at::Tensor TiledLinear(const at::Tensor& x, const at::Tensor& w,
                       const at::Tensor& b, int64_t tile);

// One matrix per head: x [n, H, k], n a multiple of tile; w [H, k, m].
// Returns [n, H, m], contiguous.
at::Tensor TiledHeads(const at::Tensor& x, const at::Tensor& w, int64_t tile);

}  // namespace txl
