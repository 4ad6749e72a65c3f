#pragma once

// Weights of 4 bits. In groups of 32 inputs a weight is (code - zero) * step, a
// whole number of 8 bits made of three of 4, times a scale of its output: what
// is multiplied are numbers of 8 bits, unpacked a piece at a time, or, by few
// rows of whole numbers, codes (integer_product.h). The same numbers on every
// instruction set.
//
// A panel of kPanel outputs, group by group: a byte for each output, step + 16
// zero, then the codes of 8 inputs after 8, [4][kPanel][4] bytes, each with the
// code of input i below and of input i + 4 above. 4.25 bits a weight, read in
// order.

#include <cstdint>

#include "model/cpu/panel_product.h"

namespace txl {

inline constexpr int64_t kInt4Group = 32;
inline constexpr int64_t kInt4GroupBytes = kPanel * (1 + kInt4Group / 2);

// Bytes of a panel for `inputs`, padded with zeros to whole groups.
inline constexpr int64_t Int4PanelBytes(int64_t inputs) {
  return RoundUp(inputs, kInt4Group) / kInt4Group * kInt4GroupBytes;
}

// Writes x [inputs] as output `output` of a panel; returns the scale. A group's
// error is at most half a step, its smallest and largest numbers and zero being
// the ends of the codes; steps are fifteenths of the output's coarsest. NaN
// where x is not finite.
float PackInt4Output(const float* x, int64_t inputs, int64_t output,
                     uint8_t* panel);
// row [inputs] = the numbers of an output, without its scale.
void UnpackInt4Output(const uint8_t* panel, int64_t output, int64_t inputs,
                      float* row);

// `groups` groups of a panel as whole numbers of 8 bits, in quads
// (integer_operands.h): out [groups * 8][kPanel][4].
void UnpackInt4Quads(const uint8_t* panel, int64_t groups, int8_t* out);
// The same, input by input: out [groups * 32][kPanel].
void UnpackInt4Inputs(const uint8_t* panel, int64_t groups, int8_t* out);

}  // namespace txl
