#include "model/cpu/packed_matrix.h"

#include <algorithm>

namespace txl {

PackedMatrix::PackedMatrix(const float* weights, int64_t outputs,
                           int64_t inputs)
    : outputs_(outputs),
      inputs_(inputs),
      data_(RoundUp(outputs, kPanel) * inputs) {
  for (int64_t n = 0; n < outputs; ++n) {
    const float* row = weights + n * inputs;
    float* lane = data_.data() + n / kPanel * inputs * kPanel + n % kPanel;
    for (int64_t k = 0; k < inputs; ++k) lane[k * kPanel] = row[k];
  }
}

void PackedMatrix::CopyRow(int64_t output, float* row) const {
  const float* lane = panel(output / kPanel) + output % kPanel;
  for (int64_t k = 0; k < inputs_; ++k) row[k] = lane[k * kPanel];
}

void ApplyLinear(const LinearLayer& layer, const LinearRows& rows,
                 ThreadPool& pool) {
  const PackedMatrix& w = *layer.weights;
  pool.Run(w.panels(), [&](int64_t i, int) {
    const int64_t column = i * kPanel;
    PanelProduct product;
    product.a = rows.x.data;
    product.a_stride = rows.x.stride;
    product.rows = rows.rows;
    product.b = w.panel(i);
    product.b_stride = kPanel;
    product.k = w.inputs();
    product.columns = kPanel;
    product.out = rows.out + column;
    product.out_stride = rows.out_stride;
    MultiplyPanel(product);
    RowEpilogue finish;
    finish.columns = kPanel;
    finish.bias = layer.bias == nullptr ? nullptr : layer.bias + column;
    finish.activation = layer.activation;
    for (int64_t r = 0; r < rows.rows; ++r) {
      finish.out = rows.out + r * rows.out_stride + column;
      finish.residual =
          rows.residual.data == nullptr
              ? nullptr
              : rows.residual.data + r * rows.residual.stride + column;
      FinishRow(finish);
    }
  });
}

}  // namespace txl
