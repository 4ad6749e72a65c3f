#pragma once

// The product of rows with a panel of packed numbers: the inner loop of the CPU
// step, written once with Google Highway and chosen at run time for the machine
// (AVX-512, AVX2, NEON, ...).
//
// Order of sums. Every output element is one chain of fused multiply-adds over
// k = 0, 1, 2, ... from its start value. The chain does not depend on how many
// rows or columns are worked on together, so a row's bits do not depend on its
// company. Sums along a row (norms, softmax) run lane by lane over the columns
// and then across the lanes in one order. Both depend on the instruction set
// alone.

#include <cstdint>

#include "model/base/number_format.h"

namespace txl {

// Columns come in groups of this many; a panel is kPanel columns wide.
inline constexpr int64_t kColumnGroup = 16;
inline constexpr int64_t kPanel = 64;

// x rounded up to a multiple of `unit`.
inline constexpr int64_t RoundUp(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

// x [count] to `out` in another format, rounded to nearest, ties to even. Not
// kInt8 or kInt4, which need scales.
void NarrowRow(const float* x, int64_t count, NumberFormat format, void* out);
// Widens them, exactly; kInt8 to numbers without their scale. Not kInt4.
void WidenRow(const void* x, NumberFormat format, int64_t count, float* out);

// out[r][c] (+)= sum over k of a[r][k] * b[k][c].
struct PanelProduct {
  const float* a = nullptr;  // [rows, k], rows a_stride apart
  int64_t a_stride = 0;
  int64_t rows = 0;
  const void* b = nullptr;  // [k, columns], rows b_stride elements apart
  int64_t b_stride = 0;
  NumberFormat b_format = NumberFormat::kF32;  // not kInt4
  int64_t k = 0;
  int64_t columns = 0;   // a multiple of kColumnGroup
  float* out = nullptr;  // [rows, columns], rows out_stride apart
  int64_t out_stride = 0;
  bool accumulate = false;  // start from what `out` holds instead of 0
};
void MultiplyPanel(const PanelProduct& product);

// Multiplies with b turned: out[r][c] = sum over k of a[r][k] * b[c][k], b
// [columns, k] with rows b_stride elements apart; k a multiple of kColumnGroup,
// columns of 4. Sums run lane by lane over k, then across the lanes. Never
// accumulates.
void MultiplyRows(const PanelProduct& product);

}  // namespace txl
