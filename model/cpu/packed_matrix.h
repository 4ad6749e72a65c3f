#pragma once

// A weight matrix as the CPU step reads it: output rows in the vector lanes,
// in panels of kPanel outputs, each a run of memory that is read once for all
// rows of a step.

#include <cstdint>
#include <functional>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/integer_operands.h"
#include "model/cpu/thread_pool.h"
#include "model/cpu/vector_kernels.h"

namespace txl {

// [outputs, inputs], stored [panel][input][kPanel]; outputs beyond the last are
// zeros. For integer products the inputs are filled up with zeros to whole
// quads and lie as integer_operands.h says. kInt4: as int4_panel.h says,
// whatever the products. Const after construction.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // `weights`: [outputs, inputs], row-major. kInt8: every output has a scale,
  // its largest magnitude / 127. kInteger: kInt8 and kInt4 only.
  PackedMatrix(const float* weights, int64_t outputs, int64_t inputs,
               NumberFormat format = NumberFormat::kF32,
               Products products = Products::kFloat);

  // What such a matrix takes.
  static int64_t BytesOf(int64_t outputs, int64_t inputs, NumberFormat format,
                         Products products = Products::kFloat);

  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t panels() const { return RoundUp(outputs_, kPanel) / kPanel; }
  NumberFormat format() const { return format_; }
  Products products() const { return products_; }
  int64_t bytes() const {
    return data_.size() + scales_.size() * int64_t{sizeof(float)};
  }
  const uint8_t* panel(int64_t i) const {
    return data_.data() + i * panel_bytes_;
  }
  // Inputs that are multiplied: filled up to whole quads for integer products.
  int64_t depth() const { return depth_; }
  // One scale per output, RoundUp(outputs, kPanel); null but for kInt8 and
  // kInt4.
  const float* scales() const {
    return scales_.size() == 0 ? nullptr : scales_.data();
  }
  // weights[output][0..inputs) as stored, inputs numbers.
  void CopyRow(int64_t output, float* row) const;

 private:
  int64_t outputs_ = 0;
  int64_t inputs_ = 0;
  int64_t depth_ = 0;
  int64_t panel_bytes_ = 0;
  NumberFormat format_ = NumberFormat::kF32;
  Products products_ = Products::kFloat;
  AlignedBuffer<uint8_t> data_;
  AlignedBuffer<float> scales_;

  // An output's numbers into its lane of its panel.
  void PackOutput(int64_t output, const float* row, uint8_t* narrow);
};

// Copies `count` numbers to every `stride`-th place of `out`.
void SpreadNumbers(const void* row, NumberFormat format, int64_t count,
                   int64_t stride, void* out);

// out[r][n] = act(sum_k x[r][k] w[n][k] + bias[n]) + residual[r][n].
// Rows of `out` and `residual` are written and read up to RoundUp(outputs,
// kPanel); their strides are at least that.
struct LinearLayer {
  const PackedMatrix* weights = nullptr;
  const float* bias = nullptr;  // RoundUp(outputs, kPanel) numbers, or null
  RowActivation activation = RowActivation::kNone;
};

struct RowBlock {
  const float* data = nullptr;
  int64_t stride = 0;
};

// Rows as whole numbers: the room that integer products need.
// Thread-compatible.
class IntegerRows {
 public:
  // Grows where it has to.
  void Reserve(int64_t rows, int64_t columns);
  // x [rows, columns], over the pool's threads; reserves them.
  void Quantise(const RowBlock& x, int64_t rows, int64_t columns,
                ThreadPool& pool);

  // All rows, or every `step`-th from `first` on.
  IntegerFactor factor() const { return Every(1, 0); }
  IntegerFactor Every(int64_t step, int64_t first) const {
    return {data_.data() + first * stride_, step * stride_,
            rows_.data() + first, step};
  }

 private:
  AlignedBuffer<int8_t> data_;
  AlignedBuffer<IntegerRow> rows_;
  int64_t stride_ = 0;
};

struct LinearRows {
  int64_t rows = 0;
  RowBlock x;
  RowBlock residual;  // null data: none
  float* out = nullptr;
  int64_t out_stride = 0;
  // Integer products need it; ApplyPanel finds x in it, ApplyLinear puts it
  // there.
  IntegerRows* integers = nullptr;
};

// Columns [panel * kPanel, (panel + 1) * kPanel) of x times the matrix, without
// its scales where products are floats, into rows of `out`. Returns the scales
// that are left to be applied, or null.
struct ProductRows {
  int64_t rows = 0;
  RowBlock x;
  IntegerFactor integers;  // the same, where the products are integer ones
  float* out = nullptr;
  int64_t out_stride = 0;
};
const float* MultiplyByPanel(const PackedMatrix& weights, int64_t panel,
                             const ProductRows& rows);

// Columns [panel * kPanel, (panel + 1) * kPanel) of the product.
void ApplyPanel(const LinearLayer& layer, const LinearRows& rows,
                int64_t panel);
// The panel of a claim, both in [0, panels): a permutation in which claims go
// round `threads` runs of neighbouring panels. Threads that take turns read on
// where they were, which is what memory and its prefetchers are fastest at.
int64_t PanelOfClaim(int64_t claim, int64_t panels, int64_t threads);
// The product, panel by panel over the pool's threads.
void ApplyLinear(const LinearLayer& layer, const LinearRows& rows,
                 ThreadPool& pool);

}  // namespace txl
