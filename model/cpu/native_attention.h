#pragma once

// Attention of one layer in projected form (docs/ARCHITECTURE.md, "One step"):
//
//   score_j = D^-1/2 [ (q_n + u_n) . K_j + (q_n + v_n) . (Wr_n R_delta) ]
//   out_n   = sum_j softmax(score)_j V_j
//
// with keys K and values V in the rings of NativeArena. Every sum runs over
// the absolute positions from the oldest visible one on, so that a query's
// bits depend on its session's tokens alone: not on the batch, not on how a
// prompt was cut, not on threads.

#include <cstdint>
#include <vector>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/native_arena.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/thread_pool.h"

namespace txl {

// Consecutive rows of a batch that belong to one slot.
struct NativeRun {
  int32_t slot = 0;
  int64_t position = 0;   // absolute position of the first row
  int64_t first_row = 0;  // in the batch
  int64_t rows = 0;
};

class NativeAttention {
 public:
  // `arena` outlives it. `distances`: as in NativeWeights.
  NativeAttention(NativeArena& arena, int64_t distances, int workers);

  // queries [rows, HD]; keys and values of the rows are already in the rings.
  // Writes out [rows, HD].
  struct Rows {
    const float* queries = nullptr;
    int64_t stride = 0;  // between two rows of queries
    float* out = nullptr;
    int64_t out_stride = 0;
  };
  void Run(const NativeLayer& layer, int64_t layer_index,
           const std::vector<NativeRun>& runs, const Rows& rows,
           ThreadPool& pool);

 private:
  struct Scratch {
    AlignedBuffer<float> content;   // [kRunRows, score_stride]
    AlignedBuffer<float> position;  // [kTaskRows, position_stride]
    AlignedBuffer<float> queries;   // [kTaskRows, D]
    AlignedBuffer<float> out;       // [kRunRows, value_stride]
  };
  struct Task {
    const NativeLayer* layer = nullptr;
    int64_t layer_index = 0;
    int64_t head = 0;
    const NativeRun* begin = nullptr;  // runs of the task
    const NativeRun* end = nullptr;
    Rows rows;
  };

  void RunTask(const Task& task, Scratch& scratch);
  void PositionScores(const Task& task, Scratch& scratch);
  void RunOne(const Task& task, const NativeRun& run,
              const float* position_scores, Scratch& scratch);
  void SumValues(const Task& task, const NativeRun& run, int64_t tile_begin,
                 Scratch& scratch);
  // weights [.., count] of positions first.. times their values, added.
  void AddValues(const Task& task, const NativeRun& run, int64_t row,
                 int64_t rows, int64_t first, int64_t last, int64_t tile_begin,
                 Scratch& scratch);

  NativeArena& arena_;
  const int64_t distances_;
  const int64_t columns_;          // of a layer's position keys
  const int64_t position_offset_;  // of column 0 in a row of position scores
  const int64_t position_stride_;
  const int64_t score_stride_;
  std::vector<Scratch> scratch_;  // per worker
};

// `runs` cut into pieces of at most kRunRows rows.
std::vector<NativeRun> CutRuns(const std::vector<NativeRun>& runs);

}  // namespace txl
