#pragma once

// What the CPU step does with single rows: epilogues, norms, softmax. As
// panel_product.h: Google Highway, chosen at run time, sums in one order.

#include <cstdint>
#include <string>

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

// scores[i] = (content[i] + position[i]) * scale for count numbers, and
// exp(score - max) in their place; returns their sum. Elements before `begin`
// and from `end` on are written as 0. count is a multiple of kColumnGroup;
// begin < end.
float SoftmaxWeights(float* content, const float* position, float scale,
                     int64_t begin, int64_t end, int64_t count);

// out = a + b, `columns` a multiple of kColumnGroup.
void AddRows(const float* a, const float* b, int64_t columns, float* out);

// log sum exp of x [count], x readable up to the next multiple of
// kColumnGroup.
float LogSumExp(const float* x, int64_t count);
// x += shift, count any.
void ShiftRow(float* x, int64_t count, float shift);

// "AVX3", "AVX2", "NEON", "EMU128", ...: the target that runs here.
std::string VectorTarget();

}  // namespace txl
