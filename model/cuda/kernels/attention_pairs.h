#pragma once

// Which rows of a step a block of the tensor core kernel takes together, so
// that it reads the stored rows that both of them see once: a prompt's rows,
// two by two.

#include <cstdint>

#include "model/cuda/device/kernel.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {

inline constexpr int kPairedRows = 2;

// Whether row r of the step and the one behind it are a pair: of one slot, at
// positions 2k and 2k + 1, which have one tile.
TXL_ANYWHERE bool ArePaired(const StepRows& rows, int r) {
  return r >= 0 && r + 1 < rows.count && rows.slot[r] >= 0 &&
         rows.slot[r + 1] == rows.slot[r] && rows.position[r] % 2 == 0 &&
         rows.position[r + 1] == rows.position[r] + 1;
}

// How many rows the block of row r takes, from r on: 0 where there is no such
// row, or the block before has it. `in_pairs`: whether any block takes two.
TXL_ANYWHERE int RowsFrom(const StepRows& rows, int r, bool in_pairs) {
  if (rows.slot[r] < 0) return 0;
  if (!in_pairs) return 1;
  if (ArePaired(rows, r - 1)) return 0;
  return ArePaired(rows, r) ? kPairedRows : 1;
}

}  // namespace txl::cuda
