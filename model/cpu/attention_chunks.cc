#include "model/cpu/attention_chunks.h"

#include <algorithm>
#include <cmath>

#include "model/cpu/integer_product.h"
#include "model/cpu/vector_target.h"

namespace txl {
namespace {

// Rows of one slot whose queries of a head read its keys and values together:
// what a block of vectors takes, and what a tile does.
constexpr int64_t kProjectedRows = 6;
constexpr int64_t kTiledRows = 16;
// Queries that read stored rows together: more would not fit the caches.
constexpr int64_t kAbsorbedQueries = 24;
// Long enough that merging, and going from keys to values and back, cost
// little; short enough that the second-level cache holds a chunk's keys and
// values for all rows of a prompt, and a chunk's stored rows until they are
// read again as values.
constexpr int64_t kProjectedLength = 512;
constexpr int64_t kAbsorbedLength = 128;

int64_t FloorTo(int64_t position, int64_t unit) {
  return position - ((position % unit) + unit) % unit;
}

bool IsAbsorbed(const NativeArena& arena) {
  return arena.shape().form == AttentionForm::kAbsorbed;
}

int64_t RunRows(const NativeArena& arena) {
  if (!IsAbsorbed(arena)) {
    const bool tiled =
        UsesTiles() && arena.shape().derived == NumberFormat::kInt8;
    return tiled ? kTiledRows : kProjectedRows;
  }
  return std::max<int64_t>(1, kAbsorbedQueries / arena.shape().heads);
}

}  // namespace

ChunkAttention::ChunkAttention(NativeArena& arena,
                               const PositionScores& positions)
    : arena_(arena),
      positions_(positions),
      run_rows_(RunRows(arena)),
      width_(IsAbsorbed(arena) ? arena.row_stride()
                               : arena.shape().value_stride()),
      length_(IsAbsorbed(arena) ? kAbsorbedLength : kProjectedLength) {}

int64_t ChunkAttention::max_queries() const {
  return run_rows_ * (IsAbsorbed(arena_) ? arena_.shape().heads : 1);
}

int64_t ChunkAttention::max_chunks() const {
  return (arena_.ring().window + run_rows_) / length_ + 2;
}

int64_t ChunkAttention::FirstChunk(const NativeRun& run) const {
  return FloorTo(arena_.ring().OldestVisible(run.position), length_);
}

int64_t ChunkAttention::LastChunk(const NativeRun& run) const {
  return FloorTo(run.position + run.rows - 1, length_);
}

bool ChunkAttention::has_integers() const {
  return !IsAbsorbed(arena_) && arena_.shape().derived == NumberFormat::kInt8;
}

bool ChunkAttention::has_row_scales() const {
  return IsAbsorbed(arena_) && arena_.shape().memory == NumberFormat::kInt8;
}

// Behind the scores two halves of their weights, in bytes.
AlignedBuffer<float> ChunkAttention::MakeScratch() const {
  const int64_t scores = max_queries() * length_;
  return AlignedBuffer<float>(has_integers() ? scores + scores / 2 : scores);
}

void ChunkAttention::RunChunk(const AttentionQueries& queries, int64_t chunk,
                              const AttentionParts& result,
                              float* scratch) const {
  const RingGeometry& ring = arena_.ring();
  const NativeRun& run = queries.run;
  const int64_t newest = run.position + run.rows - 1;
  Piece piece;
  piece.begin =
      std::max(chunk, FloorTo(ring.OldestVisible(run.position), kPanel));
  piece.end = std::min(chunk + length_, FloorTo(newest, kPanel) + kPanel);
  ScoreContent(queries, piece, scratch);
  if (has_row_scales()) ScaleByRows(queries, piece, scratch);
  const ValueTiles tiles =
      has_integers() ? TilesOf(queries, piece) : ValueTiles();
  const float scale =
      1 / std::sqrt(static_cast<float>(arena_.shape().head_width));
  for (int64_t i = 0; i < queries.count(); ++i) {
    const int64_t t = run.position + i / queries.heads;
    const int64_t begin = std::max(ring.OldestVisible(t), piece.begin);
    const int64_t end = std::min(t + 1, piece.end);
    float* scores = scratch + i * length_;
    result.parts[i] = {};
    if (begin >= end) continue;
    const float* position = queries.position + i * queries.position_stride +
                            positions_.Index(t, piece.begin);
    result.parts[i] = SoftmaxWeights(
        scores, position, scale,
        {begin - piece.begin, end - piece.begin, piece.end - piece.begin},
        has_integers() ? tiles.scales : nullptr);
  }
  if (has_integers()) {
    return SumIntegerValues(queries, tiles, result, scratch);
  }
  if (has_row_scales()) ScaleByRows(queries, piece, scratch);
  SumValues(queries, piece, scratch, result.out);
}

// Scores, or weights, of rows times the rows' scales.
void ChunkAttention::ScaleByRows(const AttentionQueries& queries,
                                 const Piece& piece, float* numbers) const {
  float scales[kAbsorbedLength];
  const int64_t count = piece.end - piece.begin;
  for (int64_t i = 0; i < count; ++i) {
    scales[i] =
        arena_.RowScale(queries.run.slot, queries.layer, piece.begin + i);
  }
  RowEpilogue scale;
  scale.columns = count;
  scale.scale = scales;
  for (int64_t i = 0; i < queries.count(); ++i) {
    scale.out = numbers + i * length_;
    FinishRow(scale);
  }
}

void ChunkAttention::ScoreContent(const AttentionQueries& queries,
                                  const Piece& piece, float* scores) const {
  const NativeShape& shape = arena_.shape();
  PanelProduct product;
  product.a = queries.content;
  product.a_stride = queries.content_stride;
  product.rows = queries.count();
  product.out_stride = length_;
  product.columns = kPanel;
  for (int64_t tile = piece.begin; tile < piece.end; tile += kPanel) {
    product.out = scores + (tile - piece.begin);
    if (shape.form == AttentionForm::kAbsorbed) {
      product.b = arena_.Row(queries.run.slot, queries.layer, tile);
      product.b_stride = arena_.row_step();
      product.b_format = shape.memory;
      product.k = arena_.row_stride();
      MultiplyRows(product);
    } else if (shape.derived == NumberFormat::kInt8) {
      const NativeRun& run = queries.run;
      IntegerProduct integers;
      integers.a = queries.integers;
      integers.rows = queries.count();
      integers.b = reinterpret_cast<const int8_t*>(
          arena_.KeyTile(run.slot, queries.layer, queries.head, tile));
      integers.b_scales =
          arena_.KeyScales(run.slot, queries.layer, queries.head, tile);
      integers.k = shape.key_depth();
      integers.out = product.out;
      integers.out_stride = length_;
      MultiplyIntegers(integers);
    } else {
      product.b =
          arena_.KeyTile(queries.run.slot, queries.layer, queries.head, tile);
      product.b_stride = kPanel;
      product.b_format = shape.derived;
      product.k = shape.head_width;
      MultiplyPanel(product);
    }
  }
}

ChunkAttention::ValueTiles ChunkAttention::TilesOf(
    const AttentionQueries& queries, const Piece& piece) const {
  static_assert(kProjectedLength == ValueTiles::kMost * kPanel);
  ValueTiles tiles;
  for (int64_t position = piece.begin; position < piece.end;
       position += kPanel) {
    tiles.numbers[tiles.count] =
        reinterpret_cast<const int8_t*>(arena_.ValueTile(
            queries.run.slot, queries.layer, queries.head, position));
    tiles.scales[tiles.count++] = arena_.ValueScales(
        queries.run.slot, queries.layer, queries.head, position);
  }
  return tiles;
}

// Whole tiles for all queries: what a query does not see has no weight, and
// adds nothing to sums of whole numbers.
void ChunkAttention::SumIntegerValues(const AttentionQueries& queries,
                                      const ValueTiles& tiles,
                                      const AttentionParts& result,
                                      float* scratch) const {
  float scales[kTiledRows];
  const int64_t numbers = max_queries() * length_;
  uint8_t* high = reinterpret_cast<uint8_t*>(scratch + numbers);
  uint8_t* low = high + numbers;
  for (int64_t i = 0; i < queries.count(); ++i) {
    float* weights = scratch + i * length_;
    if (result.parts[i].sum == 0) {
      std::fill_n(weights, tiles.count * kPanel, 0.0f);  // it sees no position
    }
    scales[i] = QuantiseWeights(
        {weights, tiles.count * kPanel, high + i * length_, low + i * length_});
  }
  IntegerSum sum;
  sum.high = high;
  sum.low = low;
  sum.stride = length_;
  sum.scales = scales;
  sum.rows = queries.count();
  sum.tiles = tiles.numbers;
  sum.panels = tiles.count;
  sum.columns = width_;
  sum.out = result.out;
  sum.out_stride = width_;
  SumIntegers(sum);
}

// Positions that all rows see are read once for all; the rows' own ends, before
// and after, row by row. For each row the order of positions is the same.
void ChunkAttention::SumValues(const AttentionQueries& queries,
                               const Piece& piece, const float* weights,
                               float* out) const {
  const RingGeometry& ring = arena_.ring();
  const NativeRun& run = queries.run;
  std::fill_n(out, queries.count() * width_, 0.0f);
  const int64_t common_begin = ring.OldestVisible(run.position + run.rows - 1);
  const int64_t common_end = run.position;  // inclusive
  for (int64_t r = 0; r < run.rows; ++r) {
    const int64_t t = run.position + r;
    AddValues(queries, piece,
              {r, 1, ring.OldestVisible(t), std::min(common_begin - 1, t)},
              weights, out);
  }
  AddValues(queries, piece, {0, run.rows, common_begin, common_end}, weights,
            out);
  for (int64_t r = 0; r < run.rows; ++r) {
    AddValues(queries, piece,
              {r, 1, std::max(common_begin, common_end + 1), run.position + r},
              weights, out);
  }
}

void ChunkAttention::AddValues(const AttentionQueries& queries,
                               const Piece& piece, const Block& block,
                               const float* weights, float* out) const {
  const RingGeometry& ring = arena_.ring();
  const NativeShape& shape = arena_.shape();
  const bool absorbed = shape.form == AttentionForm::kAbsorbed;
  const int64_t first_query = block.row * queries.heads;
  PanelProduct product;
  product.a_stride = length_;
  product.rows = block.rows * queries.heads;
  product.b_stride = absorbed ? arena_.row_step() : width_;
  product.b_format = absorbed ? shape.memory : shape.derived;
  product.columns = width_;
  product.out = out + first_query * width_;
  product.out_stride = width_;
  product.accumulate = true;
  int64_t first = std::max(block.first, piece.begin);
  const int64_t last = std::min(block.last, piece.end - 1);
  while (first <= last) {
    // Up to the end of the ring's memory.
    product.k =
        std::min(last - first + 1, ring.capacity() - ring.IndexOf(first));
    product.a = weights + first_query * length_ + (first - piece.begin);
    product.b = absorbed ? arena_.Row(queries.run.slot, queries.layer, first)
                         : arena_.Value(queries.run.slot, queries.layer,
                                        queries.head, first);
    MultiplyPanel(product);
    first += product.k;
  }
}

void ChunkAttention::Merge(const AttentionParts& part, int64_t count,
                           const AttentionParts& total) const {
  for (int64_t i = 0; i < count; ++i) {
    const SoftmaxPart& p = part.parts[i];
    SoftmaxPart& t = total.parts[i];
    if (p.sum == 0) continue;
    const float* from = part.out + i * width_;
    float* to = total.out + i * width_;
    if (t.sum == 0) {
      t = p;
      std::copy_n(from, width_, to);
      continue;
    }
    const float largest = std::max(t.largest, p.largest);
    const float t_scale = std::exp(t.largest - largest);
    const float p_scale = std::exp(p.largest - largest);
    t = {largest, t.sum * t_scale + p.sum * p_scale};
    BlendRows({to, t_scale}, {from, p_scale}, width_, to);
  }
}

void ChunkAttention::Finish(const AttentionParts& total, int64_t count) const {
  for (int64_t i = 0; i < count; ++i) {
    float* out = total.out + i * width_;
    const float inverse = 1 / total.parts[i].sum;
    for (int64_t k = 0; k < width_; ++k) out[k] *= inverse;
  }
}

}  // namespace txl
