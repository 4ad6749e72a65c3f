#pragma once

// Products over rows, computed in tiles of a fixed number of rows.
//
// Libraries choose their matrix kernels, and with them the order of a sum, by
// the shape of the product. With every product cut into tiles of one shape a
// row's result does not depend on how many other rows are in the batch.
// What was measured of it stands in torch_step.h.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace txl {

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
