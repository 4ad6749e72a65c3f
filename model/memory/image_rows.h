#pragma once

// The rows of a state image, whatever their numbers are stored as.

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/base/large_vector.h"
#include "model/memory/state_image.h"

namespace txl {

// [n_layer, rows, d_model], as float32; float64 is rounded. InvalidArgument for
// a row_dtype that is none of f64, f32, f16, bf16, int8, or data of another
// size.
absl::StatusOr<LargeVector<float>> WidenRows(const StateImage& image);

// The bytes of a row of a layer; empty where the image has none. REQUIRES: data
// of n_layer times `rows` rows of one size, and a row and layer of them.
absl::Span<const uint8_t> RowOf(const StateImage& image, int64_t layer,
                                int64_t row);

// An image of these rows alone, oldest first, not sealed. REQUIRES: as RowOf.
StateImage WithRows(const StateImage& image, absl::Span<const int64_t> rows);

}  // namespace txl
