#pragma once

// Partitioned variables in the index of a TensorFlow checkpoint.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace txl {

// The part of a dimension that a slice holds; a negative length: all of it.
struct SliceExtent {
  int64_t start = 0;
  int64_t length = -1;
};

// The key under which the index lists a slice of variable `name`: a code that
// sorts by name, then by extents.
std::string SliceKey(absl::string_view name,
                     absl::Span<const SliceExtent> extents);

// Rows [begin, end) of a slice that is whole in all dimensions but the first.
struct SliceRows {
  int64_t begin = 0;
  int64_t end = 0;
};

// Errors: InvalidArgument saying what is wrong ("is cut along dimension 1").
absl::StatusOr<SliceRows> RowsOfSlice(absl::Span<const SliceExtent> extents,
                                      absl::Span<const int64_t> shape);

}  // namespace txl
