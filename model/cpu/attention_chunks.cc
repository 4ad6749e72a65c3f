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
constexpr int64_t kIntegerRowsLength = 256;

int64_t FloorTo(int64_t position, int64_t unit) {
  return position - ((position % unit) + unit) % unit;
}

bool IsAbsorbed(const NativeArena& arena) {
  return arena.shape().form == AttentionForm::kAbsorbed;
}

int64_t RunRows(const NativeArena& arena) {
  const NativeShape& shape = arena.shape();
  if (!IsAbsorbed(arena)) {
    return UsesTiles() && shape.integer_attention() ? kTiledRows
                                                    : kProjectedRows;
  }
  const int64_t queries = shape.integer_attention() ? kPanel : kAbsorbedQueries;
  return std::max<int64_t>(1, queries / shape.heads);
}

int64_t ChunkLength(const NativeArena& arena) {
  if (!IsAbsorbed(arena)) return kProjectedLength;
  return arena.shape().integer_attention() ? kIntegerRowsLength
                                           : kAbsorbedLength;
}

}  // namespace

ChunkAttention::ChunkAttention(NativeArena& arena,
                               const PositionScores& positions)
    : arena_(arena),
      positions_(positions),
      run_rows_(RunRows(arena)),
      width_(IsAbsorbed(arena) ? arena.row_stride()
                               : arena.shape().value_stride()),
      length_(ChunkLength(arena)) {}

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

bool ChunkAttention::has_row_scales() const {
  return IsAbsorbed(arena_) && arena_.shape().memory == NumberFormat::kInt8;
}

AlignedBuffer<float> ChunkAttention::MakeScratch() const {
  const int64_t scores = max_queries() * length_;
  const int64_t halves = 2 * scores / int64_t{sizeof(float)};
  const int64_t columns = length_ * kPanel / int64_t{sizeof(float)};
  return AlignedBuffer<float>(scores + halves + length_ + columns);
}

ChunkAttention::Scratch ChunkAttention::PlacesIn(float* scratch) const {
  const int64_t scores = max_queries() * length_;
  Scratch places;
  places.scores = scratch;
  places.row_scales = scratch + scores;
  places.columns = reinterpret_cast<int8_t*>(places.row_scales + length_);
  places.high = reinterpret_cast<uint8_t*>(places.columns) + length_ * kPanel;
  places.low = places.high + scores;
  return places;
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
  const bool integers = arena_.shape().integer_attention();
  const Scratch places = PlacesIn(scratch);
  ScoreContent(queries, piece, places.scores);
  const bool widened = has_row_scales() && !integers;
  if (has_row_scales()) LoadRowScales(queries, piece, places.row_scales);
  if (widened) ScaleByRows(queries, piece, places);
  const ValueTiles tiles =
      integers ? TilesOf(queries, piece, places) : ValueTiles();
  const float scale =
      1 / std::sqrt(static_cast<float>(arena_.shape().head_width));
  for (int64_t i = 0; i < queries.count(); ++i) {
    const int64_t t = run.position + i / queries.heads;
    const int64_t begin = std::max(ring.OldestVisible(t), piece.begin);
    const int64_t end = std::min(t + 1, piece.end);
    float* scores = places.scores + i * length_;
    result.parts[i] = {};
    if (begin >= end) continue;
    const float* position = queries.position + i * queries.position_stride +
                            positions_.Index(t, piece.begin);
    result.parts[i] = SoftmaxWeights(
        scores, position, scale,
        {begin - piece.begin, end - piece.begin, piece.end - piece.begin},
        integers ? tiles.scales : nullptr);
  }
  if (integers) return SumIntegerValues(queries, tiles, result, places);
  if (widened) ScaleByRows(queries, piece, places);
  SumValues(queries, piece, places.scores, result.out);
}

void ChunkAttention::LoadRowScales(const AttentionQueries& queries,
                                   const Piece& piece, float* scales) const {
  for (int64_t t = piece.begin; t < piece.end; ++t) {
    *scales++ = arena_.RowFactor(queries.run.slot, queries.layer, t)->scale;
  }
}

// Scores, or weights, of rows times the rows' scales.
void ChunkAttention::ScaleByRows(const AttentionQueries& queries,
                                 const Piece& piece,
                                 const Scratch& scratch) const {
  RowEpilogue scale;
  scale.columns = piece.end - piece.begin;
  scale.scale = scratch.row_scales;
  for (int64_t i = 0; i < queries.count(); ++i) {
    scale.out = scratch.scores + i * length_;
    FinishRow(scale);
  }
}

// The rows are multiplied by panels of queries, so that they are read as they
// lie. Scores lie by query.
void ChunkAttention::ScoreRows(const AttentionQueries& queries, int64_t tile,
                               float* scores) const {
  const int32_t slot = queries.run.slot;
  alignas(64) float by_row[kPanel * kPanel];
  IntegerProduct product;
  product.a = {
      reinterpret_cast<const int8_t*>(arena_.Row(slot, queries.layer, tile)),
      arena_.row_step(), arena_.RowFactor(slot, queries.layer, tile),
      arena_.factor_step()};
  product.rows = kPanel;
  product.k = RoundUp(arena_.shape().model_width, kQuad);
  product.out = by_row;
  for (int64_t first = 0; first < queries.count(); first += kPanel) {
    const int64_t count = std::min(kPanel, queries.count() - first);
    product.columns = product.out_stride = RoundUp(count, kColumnGroup);
    product.b = queries.panels + first * product.k;
    product.b_scales = queries.panel_scales + first;
    MultiplyIntegers(product);
    for (int64_t i = 0; i < count; ++i) {
      float* of_query = scores + (first + i) * length_;
      for (int64_t t = 0; t < kPanel; ++t) {
        of_query[t] = by_row[t * product.columns + i];
      }
    }
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
    if (queries.panels != nullptr) {
      ScoreRows(queries, tile, product.out);
    } else if (shape.form == AttentionForm::kAbsorbed) {
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
    const AttentionQueries& queries, const Piece& piece,
    const Scratch& scratch) const {
  static_assert(kProjectedLength <= ValueTiles::kMost * kPanel &&
                kIntegerRowsLength <= ValueTiles::kMost * kPanel);
  const int32_t slot = queries.run.slot;
  ValueTiles tiles;
  for (int64_t t = piece.begin; t < piece.end; t += kPanel) {
    const uint8_t* numbers = nullptr;
    if (IsAbsorbed(arena_)) {
      numbers = arena_.Row(slot, queries.layer, t);
      tiles.scales[tiles.count] = scratch.row_scales + (t - piece.begin);
    } else {
      numbers = arena_.ValueTile(slot, queries.layer, queries.head, t);
      tiles.scales[tiles.count] =
          arena_.ValueScales(slot, queries.layer, queries.head, t);
    }
    tiles.numbers[tiles.count++] = reinterpret_cast<const int8_t*>(numbers);
  }
  return tiles;
}

// Whole tiles for all queries: what a query does not see has no weight, and
// adds nothing to sums of whole numbers.
void ChunkAttention::SumIntegerValues(const AttentionQueries& queries,
                                      const ValueTiles& tiles,
                                      const AttentionParts& result,
                                      const Scratch& scratch) const {
  const int64_t count = tiles.count * kPanel;
  // Their scales come to places of weights that are whole numbers by then.
  for (int64_t i = 0; i < queries.count(); ++i) {
    float* weights = scratch.scores + i * length_;
    if (result.parts[i].sum == 0) {
      std::fill_n(weights, count, 0.0f);  // it sees no position
    }
    const int64_t first = i * length_;
    scratch.scores[i] = QuantiseWeights(
        {weights, count, scratch.high + first, scratch.low + first});
  }
  IntegerSum sum;
  sum.high = scratch.high;
  sum.low = scratch.low;
  sum.stride = length_;
  sum.scales = scratch.scores;
  sum.rows = queries.count();
  sum.tiles = tiles.numbers;
  sum.panels = tiles.count;
  sum.columns = width_;
  sum.out = result.out;
  sum.out_stride = width_;
  if (IsAbsorbed(arena_)) return SumIntegerRows(sum, tiles, scratch.columns);
  SumIntegers(sum);
}

// Rows come into quads some columns at a time, which the first cache holds.
void ChunkAttention::SumIntegerRows(IntegerSum sum, const ValueTiles& rows,
                                    int8_t* columns) const {
  const int8_t* tiles[ValueTiles::kMost];
  float* const out = sum.out;
  sum.tiles = tiles;
  for (int64_t first = 0; first < width_; first += kPanel) {
    sum.columns = std::min(kPanel, width_ - first);
    sum.out = out + first;
    for (int64_t i = 0; i < rows.count; ++i) {
      int8_t* tile = columns + i * kPanel * kPanel;
      InterleaveTile(rows.numbers[i] + first, arena_.row_step(), sum.columns,
                     tile);
      tiles[i] = tile;
    }
    SumIntegers(sum);
  }
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
