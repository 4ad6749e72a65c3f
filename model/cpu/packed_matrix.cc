#include "model/cpu/packed_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace txl {

namespace {

// Rounds a row to int8; returns its scale.
float Quantise(const float* row, int64_t count, int8_t* out) {
  float largest = 0;
  for (int64_t k = 0; k < count; ++k) {
    largest = std::max(largest, std::abs(row[k]));
  }
  const float scale = largest / 127;
  for (int64_t k = 0; k < count; ++k) {
    out[k] = scale == 0 ? 0 : static_cast<int8_t>(std::lround(row[k] / scale));
  }
  return scale;
}

// Copies numbers to every `stride`-th place.
template <typename T>
void Spread(const void* row, int64_t count, int64_t stride, void* out) {
  const T* from = static_cast<const T*>(row);
  T* to = static_cast<T*>(out);
  for (int64_t k = 0; k < count; ++k) to[k * stride] = from[k];
}

}  // namespace

void SpreadNumbers(const void* row, NumberFormat format, int64_t count,
                   int64_t stride, void* out) {
  switch (NumberBytes(format)) {
    case 1:
      return Spread<uint8_t>(row, count, stride, out);
    case 2:
      return Spread<uint16_t>(row, count, stride, out);
    default:
      return Spread<uint32_t>(row, count, stride, out);
  }
}

int64_t PackedMatrix::BytesOf(int64_t outputs, int64_t inputs,
                              NumberFormat format) {
  const int64_t padded = RoundUp(outputs, kPanel);
  const int64_t scales =
      format == NumberFormat::kInt8 ? padded * int64_t{sizeof(float)} : 0;
  return padded * inputs * NumberBytes(format) + scales;
}

PackedMatrix::PackedMatrix(const float* weights, int64_t outputs,
                           int64_t inputs, NumberFormat format)
    : outputs_(outputs),
      inputs_(inputs),
      format_(format),
      data_(RoundUp(outputs, kPanel) * inputs * NumberBytes(format)),
      scales_(format == NumberFormat::kInt8 ? RoundUp(outputs, kPanel) : 0) {
  const int64_t bytes = NumberBytes(format);
  std::vector<uint8_t> narrow(inputs * bytes);
  for (int64_t n = 0; n < outputs; ++n) {
    const float* row = weights + n * inputs;
    if (format == NumberFormat::kInt8) {
      scales_[n] =
          Quantise(row, inputs, reinterpret_cast<int8_t*>(narrow.data()));
    } else {
      NarrowRow(row, inputs, format, narrow.data());
    }
    SpreadNumbers(
        narrow.data(), format, inputs, kPanel,
        data_.data() + (n / kPanel * inputs * kPanel + n % kPanel) * bytes);
  }
}

void PackedMatrix::CopyRow(int64_t output, float* row) const {
  const int64_t bytes = NumberBytes(format_);
  const uint8_t* lane = panel(output / kPanel) + output % kPanel * bytes;
  const float scale = scales_.size() == 0 ? 1.0f : scales_[output];
  for (int64_t k = 0; k < inputs_; k += kColumnGroup) {
    const int64_t count = std::min(kColumnGroup, inputs_ - k);
    // Gathered first: the panel's numbers of one output lie apart.
    uint8_t narrow[kColumnGroup * sizeof(float)];
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(narrow + i * bytes, lane + (k + i) * kPanel * bytes, bytes);
    }
    WidenRow(narrow, format_, count, row + k);
    if (scale == 1) continue;
    for (int64_t i = k; i < k + count; ++i) row[i] *= scale;
  }
}

void ApplyPanel(const LinearLayer& layer, const LinearRows& rows,
                int64_t panel) {
  const PackedMatrix& w = *layer.weights;
  const int64_t column = panel * kPanel;
  PanelProduct product;
  product.a = rows.x.data;
  product.a_stride = rows.x.stride;
  product.rows = rows.rows;
  product.b = w.panel(panel);
  product.b_stride = kPanel;
  product.b_format = w.format();
  product.k = w.inputs();
  product.columns = kPanel;
  product.out = rows.out + column;
  product.out_stride = rows.out_stride;
  MultiplyPanel(product);
  RowEpilogue finish;
  finish.columns = kPanel;
  finish.scale = w.scales() == nullptr ? nullptr : w.scales() + column;
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
}

int64_t PanelOfClaim(int64_t claim, int64_t panels, int64_t threads) {
  const int64_t run = panels / threads;
  if (claim >= run * threads) return claim;
  return claim % threads * run + claim / threads;
}

void ApplyLinear(const LinearLayer& layer, const LinearRows& rows,
                 ThreadPool& pool) {
  const int64_t panels = layer.weights->panels();
  pool.Run(panels, [&](int64_t claim, int) {
    ApplyPanel(layer, rows, PanelOfClaim(claim, panels, pool.threads()));
  });
}

}  // namespace txl
