#pragma once

// The products and sums of integer_product.h on AMX's tiles (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, chapter 18): sixteen
// rows by sixteen outputs by 64 inputs an instruction. Panels and value tiles
// in quads are read as they lie.

#include <string>

#include "model/cpu/integer_operands.h"

namespace txl {

// Whether this process multiplies tiles of 8-bit integers: the processor can,
// and the kernel, which is asked the first time, lets it. Thread-safe.
bool HasTiles();
// Why the kernel does not let it although the processor can; else "".
const std::string& TilesRefusal();

// Fewer rows than these are faster on vectors.
inline constexpr int64_t kTileProductRows = 8;
inline constexpr int64_t kTileSumRows = 4;

// MultiplyIntegers and SumIntegers with the same bits. Only where HasTiles().
// Thread-safe.
void MultiplyOnTiles(const IntegerProduct& product);
void SumOnTiles(const IntegerSum& sum);

// Releases the calling thread's tiles, which both functions leave configured
// for the next product: other libraries configure them differently, and the
// kernel then has none to save. Does nothing if they are not in use.
void ReleaseTiles();

}  // namespace txl
