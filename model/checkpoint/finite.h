#pragma once

// Looking for NaN and infinity in raw tensor bytes, without a copy of them.

#include <cstdint>

#include "absl/types/span.h"
#include "model/checkpoint/safetensors.h"

namespace txl {

// Whether every element is finite. `bytes` holds whole elements of `dtype` in
// the byte order of the machine, at any alignment. Integers are always finite.
bool AllFinite(DType dtype, absl::Span<const uint8_t> bytes);

}  // namespace txl
