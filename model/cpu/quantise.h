#pragma once

// Numbers as whole numbers of few bits times a scale, and back: what integer
// products (integer_product.h) work on. The same bits on every instruction set.

#include <cstdint>

#include "model/cpu/panel_product.h"

namespace txl {

// A row of floats as whole numbers in [-127, 127] times a scale.
struct IntegerRow {
  float scale = 0;
  int32_t sum = 0;  // of the whole numbers
};
// x's largest magnitude / 127. NaN where x is not finite, 0 where it is as good
// as zero: of either all whole numbers are 0.
float ScaleOf(const float* x, int64_t count);
// x / scale, rounded to nearest, ties to even. `out`: RoundUp(count,
// kColumnGroup) numbers, zeros from `count` on. Returns their sum.
int32_t QuantiseBy(const float* x, int64_t count, float scale, int8_t* out);
// Both.
IntegerRow QuantiseRow(const float* x, int64_t count, int8_t* out);
// x [count] = numbers times scale.
void RestoreRow(const int8_t* numbers, float scale, int64_t count, float* x);

// Weights of positions as whole numbers of 16 bits, in two halves: their
// products with values of 8 bits are sums of two of 8 bits.
struct IntegerWeights {
  const float* weights = nullptr;  // [count], >= 0
  int64_t count = 0;               // a multiple of kColumnGroup
  uint8_t* high = nullptr;         // [count]
  uint8_t* low = nullptr;
};
// Weights as (256 high + low) times the scale that it returns. NaN where a
// weight is not finite, 0 where all are as good as zero: of either all whole
// numbers are 0.
float QuantiseWeights(const IntegerWeights& weights);

}  // namespace txl
