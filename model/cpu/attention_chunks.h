#pragma once

// Attention of one session's queries over a piece of its memory, and how the
// pieces become one softmax:
//
//   score_j = D^-1/2 [ content_j + position_j ]
//   out     = sum_j softmax(score)_j c_j
//
// The memory is worked on in chunks of absolute positions, each with its own
// maximum and sum, merged oldest first (as in arXiv:1805.02867). Chunks begin
// at multiples of their length, so that a query's bits do not depend on how its
// prompt was cut, nor on which threads did which chunk.

#include <cstdint>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/integer_operands.h"
#include "model/cpu/native_arena.h"
#include "model/cpu/position_scores.h"
#include "model/cpu/vector_kernels.h"

namespace txl {

// Consecutive rows of a batch that belong to one slot.
struct NativeRun {
  int32_t slot = 0;
  int64_t position = 0;   // absolute position of the first row
  int64_t first_row = 0;  // in the batch
  int64_t rows = 0;
};

// Queries that read the same numbers: in projected form those of one head of a
// run, in absorbed form those of all heads. Query i is head i mod heads of row
// i / heads.
struct AttentionQueries {
  NativeRun run;
  int64_t layer = 0;
  int64_t head = 0;  // projected form
  int64_t heads = 1;
  const float* content = nullptr;  // [rows * heads, D or d]
  int64_t content_stride = 0;
  const float* position = nullptr;  // [rows * heads], as PositionScores says
  int64_t position_stride = 0;
  IntegerFactor integers;  // content, where keys are int8
  // Content where absorbed queries meet int8 rows: panels in quads of up to
  // kPanel queries each, the last one rounded up to column groups.
  const int8_t* panels = nullptr;
  const float* panel_scales = nullptr;

  int64_t count() const { return run.rows * heads; }
};

// Parts of several queries' softmax: out [width()] of each is
// sum_j exp(score_j - largest) c_j.
struct AttentionParts {
  SoftmaxPart* parts = nullptr;
  float* out = nullptr;
};

// Thread-safe but for the scratch memory.
class ChunkAttention {
 public:
  ChunkAttention(NativeArena& arena, const PositionScores& positions);

  // Most rows of a run.
  int64_t run_rows() const { return run_rows_; }
  // Most queries of a unit of work.
  int64_t max_queries() const;
  // Numbers of one query's output: value_stride() or row_stride().
  int64_t width() const { return width_; }
  // Positions of a chunk.
  int64_t length() const { return length_; }
  // Most chunks that one run sees.
  int64_t max_chunks() const;
  // First position of the oldest chunk that the run sees, and of the newest.
  int64_t FirstChunk(const NativeRun& run) const;
  int64_t LastChunk(const NativeRun& run) const;

  // One worker's: max_queries() rows of scores.
  AlignedBuffer<float> MakeScratch() const;
  // The parts of all queries over the chunk that begins at `chunk`.
  void RunChunk(const AttentionQueries& queries, int64_t chunk,
                const AttentionParts& result, float* scratch) const;
  // total += part, for `count` queries.
  void Merge(const AttentionParts& part, int64_t count,
             const AttentionParts& total) const;
  // out / sum.
  void Finish(const AttentionParts& total, int64_t count) const;

 private:
  // Positions [begin, end) of a chunk in whole panels.
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
  };
  // Positions first..last (inclusive) that rows [row, row + rows) all see.
  struct Block {
    int64_t row = 0;
    int64_t rows = 0;
    int64_t first = 0;
    int64_t last = 0;
  };

  // Where one worker's scratch memory has what.
  struct Scratch {
    float* scores = nullptr;      // [max_queries(), length()]
    uint8_t* high = nullptr;      // their weights as whole numbers:
    uint8_t* low = nullptr;       // QuantiseWeights
    float* row_scales = nullptr;  // [length()], of stored int8 rows
    int8_t* columns = nullptr;    // value tiles of kPanel columns of them
  };
  // The int8 values of a piece: a head's tiles, or stored rows. Their scales.
  struct ValueTiles {
    static constexpr int64_t kMost = 8;  // as SumIntegers adds up
    const int8_t* numbers[kMost];
    const float* scales[kMost];
    int64_t count = 0;
  };

  // Whether stored rows have scales: absorbed rows of int8 do.
  bool has_row_scales() const;
  Scratch PlacesIn(float* scratch) const;
  void LoadRowScales(const AttentionQueries& queries, const Piece& piece,
                     float* scales) const;
  void ScaleByRows(const AttentionQueries& queries, const Piece& piece,
                   const Scratch& scratch) const;
  ValueTiles TilesOf(const AttentionQueries& queries, const Piece& piece,
                     const Scratch& scratch) const;
  void SumIntegerValues(const AttentionQueries& queries,
                        const ValueTiles& tiles, const AttentionParts& result,
                        const Scratch& scratch) const;
  void SumIntegerRows(IntegerSum sum, const ValueTiles& rows,
                      int8_t* columns) const;
  void ScoreRows(const AttentionQueries& queries, int64_t tile,
                 float* scores) const;
  void ScoreContent(const AttentionQueries& queries, const Piece& piece,
                    float* scores) const;
  void SumValues(const AttentionQueries& queries, const Piece& piece,
                 const float* weights, float* out) const;
  void AddValues(const AttentionQueries& queries, const Piece& piece,
                 const Block& block, const float* weights, float* out) const;

  NativeArena& arena_;
  const PositionScores& positions_;
  const int64_t run_rows_;
  const int64_t width_;
  const int64_t length_;
};

}  // namespace txl
