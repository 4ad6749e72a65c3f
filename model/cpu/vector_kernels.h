#pragma once

// What the CPU step does with single rows: epilogues, norms, softmax. As
// panel_product.h: Google Highway, chosen at run time, sums in one order.

#include <cstdint>

#include "model/cpu/panel_product.h"

namespace txl {

enum class RowActivation { kNone, kRelu, kGeluTanh };

// out[i] = act(out[i] * scale[i] + bias[i]) + residual[i] for `columns` (a
// multiple of kColumnGroup) numbers; null operands are left out.
struct RowEpilogue {
  float* out = nullptr;
  int64_t columns = 0;
  const float* scale = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  RowActivation activation = RowActivation::kNone;
};
void FinishRow(const RowEpilogue& epilogue);

// LayerNorm (arXiv:1607.06450) of x [columns] into out (may be x); g and b
// [columns]. The numbers between `columns` and the next multiple of
// kColumnGroup are written as 0; x must be readable there.
void NormalizeRow(const float* x, int64_t columns, const float* g,
                  const float* b, float eps, float* out);

// Softmax of one query over some positions: exp(score - largest) summed.
struct SoftmaxPart {
  float largest = 0;
  float sum = 0;  // 0: no position
};

// Positions [begin, end) of `count` are visible; begin < end, count a multiple
// of kColumnGroup.
struct VisibleSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count = 0;
};

// Writes w[i] = exp(score - largest score) over `content`, with
// score[i] = (content[i] + position[i]) * scale; 0 where not visible.
// `value_scales`, where values are int8: per kPanel positions, their scales.
// w[i] times its scale is written then, and the sum is that of w.
SoftmaxPart SoftmaxWeights(float* content, const float* position, float scale,
                           const VisibleSpan& visible,
                           const float* const* value_scales = nullptr);

struct WeightedRow {
  const float* data = nullptr;
  float weight = 0;
};
// out = a.weight a + b.weight b, `columns` a multiple of kColumnGroup.
void BlendRows(const WeightedRow& a, const WeightedRow& b, int64_t columns,
               float* out);

// out = a + b, `columns` a multiple of kColumnGroup.
void AddRows(const float* a, const float* b, int64_t columns, float* out);

// log sum exp of x [count], x readable up to the next multiple of
// kColumnGroup.
float LogSumExp(const float* x, int64_t count);
// x += shift, count any.
void ShiftRow(float* x, int64_t count, float shift);

}  // namespace txl
