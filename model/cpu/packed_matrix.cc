#include "model/cpu/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "model/cpu/int4_panel.h"
#include "model/cpu/integer_product.h"

namespace txl {

namespace {

// Copies numbers to every `stride`-th place.
template <typename T>
void Spread(const void* row, int64_t count, int64_t stride, void* out) {
  const T* from = static_cast<const T*>(row);
  T* to = static_cast<T*>(out);
  for (int64_t k = 0; k < count; ++k) to[k * stride] = from[k];
}

int64_t DepthOf(int64_t inputs, Products products) {
  return products == Products::kInteger ? RoundUp(inputs, kQuad) : inputs;
}

int64_t PanelBytes(int64_t inputs, NumberFormat format, Products products) {
  if (format == NumberFormat::kInt4) return Int4PanelBytes(inputs);
  return DepthOf(inputs, products) * kPanel * NumberBytes(format);
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
                              NumberFormat format, Products products) {
  const int64_t padded = RoundUp(outputs, kPanel);
  const int64_t scales =
      AreWholeNumbers(format) ? padded * int64_t{sizeof(float)} : 0;
  return padded / kPanel * PanelBytes(inputs, format, products) + scales;
}

PackedMatrix::PackedMatrix(const float* weights, int64_t outputs,
                           int64_t inputs, NumberFormat format,
                           Products products)
    : outputs_(outputs),
      inputs_(inputs),
      depth_(DepthOf(inputs, products)),
      panel_bytes_(PanelBytes(inputs, format, products)),
      format_(format),
      products_(products),
      data_(RoundUp(outputs, kPanel) / kPanel * panel_bytes_),
      scales_(AreWholeNumbers(format) ? RoundUp(outputs, kPanel) : 0) {
  std::vector<uint8_t> narrow(RoundUp(inputs, kColumnGroup) *
                              NumberBytes(format));
  for (int64_t n = 0; n < outputs; ++n) {
    PackOutput(n, weights + n * inputs, narrow.data());
  }
}

void PackedMatrix::PackOutput(int64_t output, const float* row,
                              uint8_t* narrow) {
  uint8_t* first = data_.data() + output / kPanel * panel_bytes_;
  if (format_ == NumberFormat::kInt4) {
    scales_[output] = PackInt4Output(row, inputs_, output % kPanel, first);
    return;
  }
  if (format_ == NumberFormat::kInt8) {
    scales_[output] =
        QuantiseRow(row, inputs_, reinterpret_cast<int8_t*>(narrow)).scale;
  } else {
    NarrowRow(row, inputs_, format_, narrow);
  }
  if (products_ == Products::kInteger) {
    SpreadNumbers(narrow, NumberFormat::kF32, depth_ / kQuad, kPanel,
                  first + output % kPanel * kQuad);
  } else {
    SpreadNumbers(narrow, format_, inputs_, kPanel,
                  first + output % kPanel * NumberBytes(format_));
  }
}

void PackedMatrix::CopyRow(int64_t output, float* row) const {
  if (format_ == NumberFormat::kInt4) {
    UnpackInt4Output(panel(output / kPanel), output % kPanel, inputs_, row);
    for (int64_t k = 0; k < inputs_; ++k) row[k] *= scales_[output];
    return;
  }
  const int64_t bytes = NumberBytes(format_);
  // Quads lie apart as single numbers do.
  const int64_t together = products_ == Products::kInteger ? kQuad : 1;
  const int64_t run = together * bytes;
  const uint8_t* lane = panel(output / kPanel) + output % kPanel * run;
  const float scale = scales_.size() == 0 ? 1.0f : scales_[output];
  for (int64_t k = 0; k < inputs_; k += kColumnGroup) {
    const int64_t count = std::min(kColumnGroup, inputs_ - k);
    // Gathered first: the panel's numbers of one output lie apart.
    uint8_t narrow[kColumnGroup * sizeof(float)];
    for (int64_t i = 0; i < count; i += together) {
      std::memcpy(narrow + i * bytes, lane + (k + i) * kPanel * bytes, run);
    }
    WidenRow(narrow, format_, count, row + k);
    if (scale == 1) continue;
    for (int64_t i = k; i < k + count; ++i) row[i] *= scale;
  }
}

namespace {

// Whole cache lines, an odd number of them: the same inputs of neighbouring
// rows, which a tile holds, then lie in different sets of the first cache.
int64_t IntegerStride(int64_t columns) {
  constexpr int64_t kLineBytes = 64;
  const int64_t lines = RoundUp(columns, kLineBytes) / kLineBytes;
  return (lines + 1 - lines % 2) * kLineBytes;
}

}  // namespace

void IntegerRows::Reserve(int64_t rows, int64_t columns) {
  const int64_t numbers = rows * IntegerStride(columns);
  if (numbers > data_.size()) data_ = AlignedBuffer<int8_t>(numbers);
  if (rows > rows_.size()) rows_ = AlignedBuffer<IntegerRow>(rows);
}

void IntegerRows::Quantise(const RowBlock& x, int64_t rows, int64_t columns,
                           ThreadPool& pool) {
  Reserve(rows, columns);
  stride_ = IntegerStride(columns);
  // A few rows are done sooner than other threads are woken.
  constexpr int64_t kRowsPerTile = 8;
  pool.Run((rows + kRowsPerTile - 1) / kRowsPerTile, [&](int64_t tile, int) {
    const int64_t end = std::min(rows, (tile + 1) * kRowsPerTile);
    for (int64_t r = tile * kRowsPerTile; r < end; ++r) {
      rows_[r] = QuantiseRow(x.data + r * x.stride, columns,
                             data_.data() + r * stride_);
    }
  });
}

namespace {

// Groups of a panel in 4 bits that are unpacked at a time: where rows are many,
// reading and writing their sums between pieces costs more than that a first
// cache does not hold 32 KiB of numbers.
constexpr int64_t kMostGroups = 16;
int64_t GroupsTogether(int64_t rows) { return rows <= 8 ? 4 : kMostGroups; }

// unpack(groups, count, out), then multiply(first input, numbers, groups behind
// them), piece by piece.
template <class Unpack, class Multiply>
void ForEachPiece(const PackedMatrix& w, int64_t panel, int64_t rows,
                  const Unpack& unpack, const Multiply& multiply) {
  alignas(AlignedBuffer<int8_t>::kAlignment)
      int8_t numbers[kMostGroups * kInt4Group * kPanel];
  const int64_t together = GroupsTogether(rows);
  const int64_t inputs = together * kInt4Group;
  const uint8_t* groups = w.panel(panel);
  for (int64_t k = 0; k < w.depth(); k += inputs) {
    const int64_t count =
        std::min(together, (w.depth() - k + kInt4Group - 1) / kInt4Group);
    unpack(groups, count, numbers);
    groups += count * kInt4GroupBytes;
    multiply(k, std::min(inputs, w.depth() - k), numbers, groups);
  }
}

void MultiplyByIntegers(const PackedMatrix& w, int64_t panel,
                        IntegerProduct product) {
  product.b = reinterpret_cast<const int8_t*>(w.panel(panel));
  if (w.format() != NumberFormat::kInt4) return MultiplyIntegers(product);
  if (product.rows <= kInt4FewRows) return MultiplyInt4(product);
  ForEachPiece(w, panel, product.rows, UnpackInt4Quads,
               [&](int64_t first, int64_t count, const int8_t* numbers,
                   const uint8_t* next) {
                 IntegerProduct piece = product;
                 piece.a.data += first;
                 piece.b = numbers;
                 piece.k = count;
                 piece.goes_on = first != 0;
                 piece.ends = first + count == w.depth();
                 piece.next = next;
                 MultiplyIntegers(piece);
               });
}

void MultiplyByFloats(const PackedMatrix& w, int64_t panel,
                      PanelProduct product) {
  if (w.format() != NumberFormat::kInt4) {
    product.b = w.panel(panel);
    return MultiplyPanel(product);
  }
  ForEachPiece(
      w, panel, product.rows, UnpackInt4Inputs,
      [&](int64_t first, int64_t count, const int8_t* numbers, const uint8_t*) {
        PanelProduct piece = product;
        piece.a += first;
        piece.b = numbers;
        piece.b_format = NumberFormat::kInt8;
        piece.k = count;
        piece.accumulate = first != 0;
        MultiplyPanel(piece);
      });
}

}  // namespace

const float* MultiplyByPanel(const PackedMatrix& w, int64_t panel,
                             const ProductRows& rows) {
  const float* scales =
      w.scales() == nullptr ? nullptr : w.scales() + panel * kPanel;
  if (w.products() == Products::kInteger) {
    IntegerProduct product;
    product.a = rows.integers;
    product.rows = rows.rows;
    product.b_scales = scales;
    product.k = w.depth();
    product.out = rows.out;
    product.out_stride = rows.out_stride;
    MultiplyByIntegers(w, panel, product);
    return nullptr;
  }
  PanelProduct product;
  product.a = rows.x.data;
  product.a_stride = rows.x.stride;
  product.rows = rows.rows;
  product.b_stride = kPanel;
  product.b_format = w.format();
  product.k = w.inputs();
  product.columns = kPanel;
  product.out = rows.out;
  product.out_stride = rows.out_stride;
  MultiplyByFloats(w, panel, product);
  return scales;
}

void ApplyPanel(const LinearLayer& layer, const LinearRows& rows,
                int64_t panel) {
  const PackedMatrix& w = *layer.weights;
  const int64_t column = panel * kPanel;
  ProductRows product;
  product.rows = rows.rows;
  product.x = rows.x;
  if (rows.integers != nullptr) product.integers = rows.integers->factor();
  product.out = rows.out + column;
  product.out_stride = rows.out_stride;
  RowEpilogue finish;
  finish.columns = kPanel;
  finish.scale = MultiplyByPanel(w, panel, product);
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
  if (layer.weights->products() == Products::kInteger) {
    rows.integers->Quantise(rows.x, rows.rows, layer.weights->inputs(), pool);
  }
  pool.Run(panels, [&](int64_t claim, int) {
    ApplyPanel(layer, rows, PanelOfClaim(claim, panels, pool.threads()));
  });
}

}  // namespace txl
