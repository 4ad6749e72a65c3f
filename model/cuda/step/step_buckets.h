#pragma once

// Numbers of rows that steps are prepared for: a graph has one shape, so a
// step of other numbers of rows runs in the next larger one.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace txl::cuda {

// 1, 2, 4, 8, 16, then multiples of 16 up to 128, of 32 above; the last is at
// least max_rows and a multiple of 16. REQUIRES: max_rows >= 1.
std::vector<int> StepBuckets(int64_t max_rows);

// Index of the smallest bucket that holds `rows`, 1 <= rows <= buckets.back().
size_t BucketOf(const std::vector<int>& buckets, int64_t rows);

}  // namespace txl::cuda
