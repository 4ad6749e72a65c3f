#pragma once

// The positional part of the attention scores, (q_n + v_n) . (Wr_n R_delta) for
// every distance delta: the same table for all sessions, so that many rows
// read it together.

#include <cstdint>

#include "model/cpu/native_weights.h"

namespace txl {

// Thread-safe.
class PositionScores {
 public:
  // `window`: W; `distances`: as in NativeWeights.
  PositionScores(int64_t window, int64_t distances);

  // Numbers of one query's scores.
  int64_t stride() const { return stride_; }

  // Scores of one head for `rows` queries [rows, D], `query_stride` apart, into
  // rows of `out`, `out_stride` >= stride() apart.
  struct Queries {
    const float* data = nullptr;
    int64_t stride = 0;
    int64_t rows = 0;
    float* out = nullptr;
    int64_t out_stride = 0;
    IntegerFactor integers;  // the same, where the keys are int8
  };
  void Compute(const NativeLayer& layer, int64_t head,
               const Queries& queries) const;

  // Place of the score of position j for a query at t, j from t - W + 1 to t.
  // Up to two panels on either side may be read; their numbers mean nothing.
  int64_t Index(int64_t t, int64_t j) const {
    return offset_ + columns_ - 1 - t + j;
  }

 private:
  const int64_t window_;
  const int64_t distances_;
  const int64_t columns_;  // of a layer's position keys
  const int64_t offset_;   // of column 0 in a row of scores
  const int64_t stride_;
};

}  // namespace txl
