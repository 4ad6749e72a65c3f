#pragma once

// The numbers of a state image, whatever they are stored as.

#include <vector>

#include "model/memory/state_image.h"

namespace txl {

// [n_layer, rows, d_model], as float32; float64 is rounded. InvalidArgument for
// a row_dtype that is none of f64, f32, f16, bf16, int8, or data of another
// size.
absl::StatusOr<std::vector<float>> WidenRows(const StateImage& image);

}  // namespace txl
