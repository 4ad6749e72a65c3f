#pragma once

// Products of rows with weight matrices on the device.
//
// T is float, Bf16 or F16: how weights and the rows that meet them are stored.
// Sums are float32: for float one chain of multiply-adds per element and
// split, for the others tensor cores.
//
// Layout. A matrix is [outputs, inputs], row by row, both padded with zeros to
// multiples of kLinearUnit; rows that it meets are padded in the same way.
// Memory for rows is there for a multiple of kLinearRows of them; what lies in
// the rows beyond `rows` does not matter. All arrays are aligned to 16 bytes,
// distances between rows and between batch entries are multiples of 8 numbers.

#include <cstdint>

#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/row_range.h"

namespace txl::cuda {

inline constexpr int kLinearUnit = 64;
inline constexpr int kLinearRows = 16;

enum class LinearActivation { kNone, kRelu, kGeluTanh };

// For b = 0..batch-1 (heads, or 1), r < rows, n < outputs:
//
//   sum[r][n] = sum_k x[r, b, k] w[b, n, k]
//   y         = act(sum + bias[b, n]) + residual[r, b, n]
//
// of which y goes to `wide`, to `narrow` rounded, or both; null operands are
// left out. Outputs from rest_from on go to `rest` instead, without residual:
// two matrices that meet the same rows are one product. With splits > 1 the
// sums over k are split: nothing of the above but partial sums are written,
// [splits, rows, batch * outputs], and FinishLinear or the kernel that goes on
// with them (norm.h, rows.h) does that. Rows outside of `range` are left out
// by the product and by FinishLinear.
template <typename T>
struct LinearArgs {
  int rows = 0;
  int inputs = 0;   // padded
  int outputs = 0;  // padded
  int batch = 1;
  const T* x = nullptr;  // x[r, b, k] at r * x_stride + b * x_batch + k
  int64_t x_stride = 0;
  int64_t x_batch = 0;
  // w[b, n, k] at (b * outputs + n) * inputs + k. No kernel of the stream
  // writes it: it is read before they have ended.
  const T* w = nullptr;
  const float* bias = nullptr;      // [batch, outputs]
  const float* residual = nullptr;  // as wide
  LinearActivation activation = LinearActivation::kNone;
  float* wide = nullptr;  // at r * out_stride + b * out_batch + n
  T* narrow = nullptr;    // at the same index
  int64_t out_stride = 0;
  int64_t out_batch = 0;
  float* rest = nullptr;  // [rows, batch, outputs - rest_from]
  int rest_from = 0;      // a multiple of kLinearUnit
  int splits = 1;
  float* partial = nullptr;  // splits > 1: [splits, rows, batch * outputs]
  RowRange range = {};
};

// What a product costs; inputs and outputs padded.
struct LinearShape {
  int rows = 0;
  int inputs = 0;
  int outputs = 0;
  int batch = 1;
};

// Who adds up the sums of splits: FinishLinear, a kernel more, or the kernel
// that goes on with them.
enum class FinishedBy { kOwnKernel, kNextKernel };

// Splits for which the product fills a device of so many processors; 1 where
// it does without. Depends on its arguments alone. At most inputs /
// kLinearUnit.
int LinearSplits(const LinearShape& shape, FinishedBy finished_by,
                 int processors);

template <typename T>
void LaunchLinear(Stream& stream, const LinearArgs<T>& args);

// Sums args.partial up, with bias, activation, residual and outputs as above.
template <typename T>
void LaunchFinishLinear(Stream& stream, const LinearArgs<T>& args);

// How a product is cut into blocks of threads. Follows from its shape alone.

// kStream: few rows. What takes time is reading the weights: every warp reads
// its own, and the warps of a block share the inputs among themselves.
// kTiles: many rows. The warps of a block share what they read.
enum class LinearKernel { kStream, kTiles };

struct LinearPlan {
  LinearKernel kernel = LinearKernel::kStream;
  int rows = 16;        // of a block: 16 or 32 (kStream), 64 or 128 (kTiles)
  int outputs = 32;     // of a block
  int input_warps = 1;  // kStream: warps that share the inputs, 1, 2 or 4
};

LinearPlan PlanLinear(const LinearShape& shape);

// The kernels behind LaunchLinear (linear.h).

// Multiply-adds in the order of the inputs; any shape.
void LaunchPlainLinear(Stream& stream, const LinearArgs<float>& args);

// Tensor cores, T Bf16 or F16; plan.kernel is kStream, kTiles.
template <typename T>
void LaunchStreamLinear(Stream& stream, const LinearArgs<T>& args,
                        const LinearPlan& plan);
template <typename T>
void LaunchTileLinear(Stream& stream, const LinearArgs<T>& args,
                      const LinearPlan& plan);

}  // namespace txl::cuda
