#pragma once

// Attention of one layer (docs/design/step.md):
//
//   score_j = D^-1/2 [ (q_n + u_n) . Wk_n c_j + (q_n + v_n) . (Wr_n R_delta) ]
//   out_n   = Wv_n sum_j softmax(score)_j c_j
//
// projected: Wk_n c_j and Wv_n c_j lie in the rings, as keys and values.
// absorbed:  the rings hold c_j alone; (q_n + u_n) Wk_n comes before and Wv_n
// behind. The sums over j are attention_chunks.h's.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/attention_chunks.h"
#include "model/cpu/native_arena.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/position_scores.h"
#include "model/cpu/thread_pool.h"

namespace txl {

// Thread-compatible. Allocates at construction only.
class NativeAttention {
 public:
  // `arena` outlives it. `distances`: as in NativeWeights.
  NativeAttention(NativeArena& arena, int64_t distances, int workers);

  // Most rows of a run.
  int64_t run_rows() const { return chunks_.run_rows(); }

  // queries [rows, HD]; what is stored of the rows is already in the rings.
  // Writes out [rows, HD].
  struct Rows {
    const float* queries = nullptr;
    int64_t stride = 0;  // between two rows of queries
    float* out = nullptr;
    int64_t out_stride = 0;
  };
  void Run(const NativeLayer& layer, int64_t layer_index,
           absl::Span<const NativeRun> runs, const Rows& rows,
           ThreadPool& pool);

 private:
  struct Batch {
    const NativeLayer* layer = nullptr;
    int64_t layer_index = 0;
    absl::Span<const NativeRun> runs;
    int64_t first_row = 0;
    int64_t rows = 0;
    Rows places;
  };
  // One worker's.
  struct Scratch {
    AlignedBuffer<float> scores;
    AlignedBuffer<float> out;  // [max_queries, width]
    AlignedBuffer<SoftmaxPart> parts;
    AlignedBuffer<float> total;  // of all queries of a group
    AlignedBuffer<SoftmaxPart> totals;
  };
  // Runs [begin, end) of a batch that one worker does together, for a head.
  struct Group {
    int64_t head = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };
  // A unit of work: one run's queries of one head, or of all.
  int64_t UnitsPerRun() const { return absorbed_ ? 1 : shape_.heads; }
  int64_t Units(const Batch& batch) const {
    return static_cast<int64_t>(batch.runs.size()) * UnitsPerRun();
  }

  void RunBatch(const Batch& batch, ThreadPool& pool);
  void AddBiases(const Batch& batch);
  void QuantiseQueries(const Batch& batch, ThreadPool& pool);
  void AbsorbKeys(const Batch& batch, ThreadPool& pool);
  void PackAbsorbed(const Batch& batch, ThreadPool& pool);
  void ScorePositions(const Batch& batch, ThreadPool& pool);
  void FormGroups(const Batch& batch);
  void RunUnits(const Batch& batch, ThreadPool& pool);
  void RunGroup(const Batch& batch, const Group& group, Scratch& scratch);
  void RunUnitsInChunks(const Batch& batch, ThreadPool& pool);
  void ProjectValues(const Batch& batch, ThreadPool& pool);

  // Rows of a head from row `first` of the batch on.
  IntegerFactor RowsOfHead(const IntegerRows& integers, int64_t first,
                           int64_t head) const;
  AttentionQueries Queries(const Batch& batch, int64_t unit) const;
  // The sums of the queries from `first` on.
  AttentionParts Totals(Scratch& scratch, int64_t first) const;
  AttentionParts Part(int64_t unit, int64_t chunk);
  void WriteUnit(const Batch& batch, int64_t unit, const AttentionParts& total);

  const NativeShape& shape_;
  const bool absorbed_;
  const PositionScores positions_;
  const ChunkAttention chunks_;
  const int64_t width_;          // H D
  const int64_t model_stride_;   // RoundUp(d, kPanel)
  const int64_t value_stride_;   // RoundUp(D, kPanel)
  const int64_t panel_queries_;  // a row's room in panels
  const int64_t panel_depth_;    // RoundUp(d, kQuad)
  const int64_t split_units_;    // fewer are split into chunks
  AlignedBuffer<float> content_queries_, position_queries_;  // [rows, H D]
  // Queries for int8 keys: one row per head.
  IntegerRows content_integers_, position_integers_;  // [rows, H]
  AlignedBuffer<float> position_scores_;   // [rows, H, positions_.stride()]
  AlignedBuffer<float> absorbed_queries_;  // [rows, H, model_stride_]
  // Absorbed queries in int8, first by query, then in the panels that
  // AttentionQueries describes. The panels of a run begin at its first row
  // times panel_queries_.
  IntegerRows absorbed_integers_;
  AlignedBuffer<int8_t> panels_;
  AlignedBuffer<float> panel_scales_;
  AlignedBuffer<float> contexts_;   // [rows, H, model_stride_]
  AlignedBuffer<float> values_;     // [rows, H, value_stride_]
  std::vector<Scratch> scratch_;    // per worker
  std::vector<int64_t> groups_;     // of the batch: their first runs
  AlignedBuffer<float> chunk_out_;  // [split_units_, max_chunks, ..]
  AlignedBuffer<SoftmaxPart> chunk_parts_;
};

}  // namespace txl
