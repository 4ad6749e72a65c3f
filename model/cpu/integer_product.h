#pragma once

// Products of whole numbers of 8 bits, summed up exactly in 32: the inner loop
// of the CPU step where weights or derived rows are int8 and their products
// integer ones. Whatever the instruction set (tiles of AMX, AVX-512 VNNI,
// others through pairs of 16 bits, or plain), company, cut and order, sums are
// the same, and the bits of every function here are, too.

#include "model/cpu/integer_operands.h"

namespace txl {

// What integer_operands.h says of their arguments. Thread-safe.
void MultiplyIntegers(const IntegerProduct& product);
void SumIntegers(const IntegerSum& sum);

}  // namespace txl
