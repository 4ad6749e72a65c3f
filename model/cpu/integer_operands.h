#pragma once

// What integer_product.h multiplies and adds up.
//
// Quads. Four numbers that are multiplied and added together lie side by side.
// A panel of inputs is [k / 4][columns][4]. A tile of positions is
// [kPanel / 4][columns][4].

#include <cstdint>

#include "model/cpu/panel_product.h"
#include "model/cpu/quantise.h"

namespace txl {

inline constexpr int64_t kQuad = 4;

// Rows as QuantiseRow makes them.
struct IntegerFactor {
  const int8_t* data = nullptr;  // rows `stride` apart
  int64_t stride = 0;
  const IntegerRow* rows = nullptr;  // `rows_stride` apart
  int64_t rows_stride = 1;
};

// out[r][c] = a.rows[r].scale * b_scales[c] * sum over k of a[r][k] * b[k][c],
// c in [0, columns). The row's sum is that of all its numbers, of every piece.
struct IntegerProduct {
  IntegerFactor a;
  int64_t rows = 0;
  const int8_t* b = nullptr;  // a panel in quads
  const float* b_scales = nullptr;
  int64_t columns = kPanel;  // a multiple of kColumnGroup, at most kPanel
  int64_t k = 0;             // a multiple of kQuad, at most 2^16
  float* out = nullptr;
  int64_t out_stride = 0;
  // A product in pieces along k: between two of them `out` holds the sums.
  bool goes_on = false;  // from the sums that are there
  bool ends = true;      // scales are multiplied in
  // What memory is asked for meanwhile, half as much as b; null: more of b.
  const void* next = nullptr;
};

// out[r][c] = scales[r] * sum over positions j of weight[r][j] * value[j][c].
struct IntegerSum {
  // Made by QuantiseWeights: [rows, panels * kPanel], `stride` apart.
  const uint8_t* high = nullptr;
  const uint8_t* low = nullptr;
  int64_t stride = 0;
  const float* scales = nullptr;
  int64_t rows = 0;
  // Tiles of kPanel positions in quads, at most 8.
  const int8_t* const* tiles = nullptr;
  int64_t panels = 0;
  int64_t columns = 0;  // a multiple of kColumnGroup
  float* out = nullptr;
  int64_t out_stride = 0;
};

}  // namespace txl
