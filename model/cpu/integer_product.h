#pragma once

// Products of whole numbers of 8 bits, summed up exactly in 32: the inner loop
// of the CPU step where weights or derived rows are int8 and their products
// integer ones. Whatever the instruction set (tiles of AMX, AVX-512 VNNI,
// others through pairs of 16 bits, or plain), company, cut and order, sums are
// the same, and the bits of every function here are, too.

#include <cstdint>

#include "model/cpu/integer_operands.h"

namespace txl {

// What integer_operands.h says of their arguments. Thread-safe.
void MultiplyIntegers(const IntegerProduct& product);
void SumIntegers(const IntegerSum& sum);

// `columns` numbers of kPanel rows, `stride` apart, as a tile in quads.
void InterleaveTile(const int8_t* rows, int64_t stride, int64_t columns,
                    int8_t* tile);

// Products of few rows with weights of 4 bits (int4_product.cc), whose numbers
// of 8 bits never come to memory: where rows are few, unpacking them
// (UnpackInt4Quads) takes longer than multiplying them.
//
// A group adds step * (sum of code * x - zero * sum of x) to an output. All of
// it are whole numbers that fit 32 bits, so the bits are those of
// MultiplyIntegers with the unpacked numbers.

// For more rows unpacking once is faster.
inline constexpr int64_t kInt4FewRows = 4;

// `product.b`: a panel as int4_panel.h says, of product.k inputs. REQUIRES: at
// most kInt4FewRows rows; no piece of a product.
void MultiplyInt4(const IntegerProduct& product);

}  // namespace txl
