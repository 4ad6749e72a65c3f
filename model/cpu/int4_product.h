#pragma once

// Products of few rows of whole numbers with weights of 4 bits, whose numbers
// of 8 bits never come to memory: where rows are few, unpacking them
// (UnpackInt4Quads) takes longer than multiplying them.
//
// A group adds step * (sum of code * x - zero * sum of x) to an output. All of
// it are whole numbers that fit 32 bits, so the bits are those of
// MultiplyIntegers with the unpacked numbers.

#include <cstdint>

#include "model/cpu/integer_product.h"

namespace txl {

// For more rows unpacking once is faster.
inline constexpr int64_t kInt4FewRows = 4;

// `product.b`: a panel as int4_panel.h says, of product.k inputs. REQUIRES: at
// most kInt4FewRows rows; no piece of a product.
void MultiplyInt4(const IntegerProduct& product);

}  // namespace txl
