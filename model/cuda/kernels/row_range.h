#pragma once

// Launches for rows whose number only the device knows.

#include <cstdint>

#include "model/base/anywhere.h"

namespace txl::cuda {

// Rows *begin..*end - 1 of a launch: numbers on the device, read when it runs,
// cut to the rows that the launch is for. Null: all of those. A launch has the
// same blocks whatever the range is, and a row the same bits; blocks without a
// row of it end at once, and nothing is written for rows outside of it.
struct RowRange {
  const int32_t* begin = nullptr;
  const int32_t* end = nullptr;
};

// The rows of a launch that are worked on: begin..end - 1.
struct RowSpan {
  int begin = 0;
  int end = 0;

  TXL_ANYWHERE bool Contains(int row) const {
    return begin <= row && row < end;
  }
  // Whether any of rows first..first + count - 1 is one of them.
  TXL_ANYWHERE bool Meets(int first, int count) const {
    return begin < first + count && first < end && begin < end;
  }
};

// For kernels. `rows`: that the launch is for.
TXL_ANYWHERE RowSpan SpanOf(const RowRange& range, int rows) {
  RowSpan span = {0, rows};
  if (range.begin != nullptr && *range.begin > 0) span.begin = *range.begin;
  if (range.end != nullptr && *range.end < rows) span.end = *range.end;
  return span;
}

}  // namespace txl::cuda
