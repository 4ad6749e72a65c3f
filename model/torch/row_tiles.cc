#include "model/torch/row_tiles.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

namespace txl {

int64_t PaddedRows(int64_t rows, int64_t tile) {
  return (rows + tile - 1) / tile * tile;
}

at::Tensor PadRows(const at::Tensor& x, int64_t tile) {
  const int64_t missing = PaddedRows(x.size(0), tile) - x.size(0);
  if (missing == 0) return x;
  return at::cat({x, at::zeros({missing, x.size(1)}, x.options())});
}

at::Tensor TiledLinear(const at::Tensor& x, const at::Tensor& w,
                       const at::Tensor& b, int64_t tile) {
  const int64_t rows = x.size(0);
  TORCH_CHECK(rows % tile == 0, rows, " rows in tiles of ", tile);
  at::Tensor out = at::empty({rows, w.size(0)}, x.options());
  const at::Tensor wt = w.t();
  for (int64_t row = 0; row < rows; row += tile) {
    at::Tensor out_tile = out.narrow(0, row, tile);
    if (b.defined()) {
      at::addmm_out(out_tile, b, x.narrow(0, row, tile), wt);
    } else {
      at::mm_out(out_tile, x.narrow(0, row, tile), wt);
    }
  }
  return out;
}

at::Tensor TiledHeads(const at::Tensor& x, const at::Tensor& w, int64_t tile) {
  const int64_t rows = x.size(0);
  TORCH_CHECK(rows % tile == 0, rows, " rows in tiles of ", tile);
  at::Tensor out = at::empty({rows, w.size(0), w.size(2)}, x.options());
  for (int64_t row = 0; row < rows; row += tile) {
    // [H, tile, k] x [H, k, m]
    const at::Tensor product =
        at::bmm(x.narrow(0, row, tile).transpose(0, 1), w);
    out.narrow(0, row, tile).copy_(product.transpose(0, 1));
  }
  return out;
}

}  // namespace txl
