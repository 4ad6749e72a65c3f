#pragma once

// A weight matrix as the CPU step reads it: output rows in the vector lanes,
// in panels of kPanel outputs, each a run of memory that is read once for all
// rows of a step.

#include <cstdint>
#include <functional>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/thread_pool.h"
#include "model/cpu/vector_kernels.h"

namespace txl {

// [outputs, inputs], stored [panel][input][kPanel]; outputs beyond the last are
// zeros. Const after construction.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // `weights`: [outputs, inputs], row-major. kInt8: every output has a scale,
  // its largest magnitude / 127.
  PackedMatrix(const float* weights, int64_t outputs, int64_t inputs,
               NumberFormat format = NumberFormat::kF32);

  // What such a matrix takes.
  static int64_t BytesOf(int64_t outputs, int64_t inputs, NumberFormat format);

  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t panels() const { return RoundUp(outputs_, kPanel) / kPanel; }
  NumberFormat format() const { return format_; }
  int64_t bytes() const {
    return data_.size() + scales_.size() * int64_t{sizeof(float)};
  }
  const uint8_t* panel(int64_t i) const {
    return data_.data() + i * inputs_ * kPanel * NumberBytes(format_);
  }
  // One scale per output, RoundUp(outputs, kPanel); null but for kInt8.
  const float* scales() const {
    return scales_.size() == 0 ? nullptr : scales_.data();
  }
  // weights[output][0..inputs) as stored, inputs numbers.
  void CopyRow(int64_t output, float* row) const;

 private:
  int64_t outputs_ = 0;
  int64_t inputs_ = 0;
  NumberFormat format_ = NumberFormat::kF32;
  AlignedBuffer<uint8_t> data_;
  AlignedBuffer<float> scales_;
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

struct LinearRows {
  int64_t rows = 0;
  RowBlock x;
  RowBlock residual;  // null data: none
  float* out = nullptr;
  int64_t out_stride = 0;
};

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
