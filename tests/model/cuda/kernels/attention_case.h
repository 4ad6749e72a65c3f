#pragma once

// Attention on random numbers, and what it should give.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/cuda/kernels/attention.h"

namespace txl::cuda {

struct AttentionShape {
  std::vector<int32_t> slots;      // of the rows
  std::vector<int64_t> positions;  // likewise
  int heads = 1;
  int64_t width = 64;  // d
  int64_t stride = 64;
  int64_t window = 33;
  int64_t capacity = 96;  // of a ring
  int64_t first_position = 0;
  int distances = 40;
  int splits = 1;
  float position_range = 8;               // of the positions' scores
  size_t shared_bytes = size_t{1} << 30;  // if the device has as much
  int seed = 1;                           // of the numbers
};

// What comes of one row and head, and how far from it a result in floating
// point may be.
struct AttentionResult {
  std::vector<double> out;      // [width]
  std::vector<double> allowed;  // [width]
};

template <typename Q, typename M>
class AttentionCase {
 public:
  explicit AttentionCase(const AttentionShape& shape);

  // [count, heads, stride]; 77 where nothing was written.
  std::vector<Q> Run() const { return RunWithSlots(shape_.slots); }
  // With these slots of the rows instead: some rows are left out by -1.
  std::vector<Q> RunWithSlots(const std::vector<int32_t>& slots_of_rows) const;
  // The definition in attention.h, in double precision.
  AttentionResult Expected(int row, int head) const;

 private:
  const M* RowAt(int row, int64_t position) const;

  AttentionShape shape_;
  int count_;
  std::vector<M> rings_;          // NaN where no row sees
  std::vector<Q> queries_;        // [count, heads, stride]
  std::vector<float> positions_;  // [count, heads, distances + 3]
};

// Runs the case under several orders of threads: the results are as expected,
// zero behind the width, and have the same bits each time.
template <typename Q, typename M>
void ExpectAttention(const AttentionShape& shape);

}  // namespace txl::cuda
