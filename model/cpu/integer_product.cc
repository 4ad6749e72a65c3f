#include "model/cpu/integer_product.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/integer_product.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "model/cpu/integer_quads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {

// Rows and vectors of a block: as many sums as the registers hold.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kRows = 6;
constexpr int kVectors = 4;
#else
constexpr int kRows = 4;
constexpr int kVectors = 2;
#endif

constexpr int64_t kLineBytes = 64;
// How far ahead a single block asks for memory.
constexpr int64_t kStepsAhead = 8;

// Which part of memory a block asks for while it works, as panel_product.cc's
// blocks do: a step's bytes at `next` in the first of every `every` steps.
struct Upcoming {
  const int8_t* next = nullptr;
  int64_t every = 1;
};

// Bytes of a panel that hold four inputs.
HWY_INLINE int64_t StepBytes(const IntegerProduct& p) {
  return p.columns * kQuad;
}

// Weights are made unsigned by 128 more, which the row's own sum takes off
// again. Narrow panels are multiplied by single vectors (V = 1).
template <int R, int V>
HWY_INLINE void Block(const IntegerProduct& p, int64_t row, int64_t column,
                      Upcoming upcoming) {
  const WordTag d;
  const FloatTag f;
  const int64_t lanes = Lanes();
  const int64_t step_bytes = V == 1 ? StepBytes(p) : kPanel * kQuad;
  const WordVec shift = hn::Set(d, static_cast<int32_t>(0x80808080));
  WordVec sum[R][V];
  for (int r = 0; r < R; ++r) {
    const float* out = p.out + (row + r) * p.out_stride + column;
    for (int v = 0; v < V; ++v) {
      sum[r][v] = p.goes_on ? LoadWords(out + v * lanes) : hn::Zero(d);
    }
  }
  const int8_t* a = p.a.data + row * p.a.stride;
  const int8_t* b = p.b + column * kQuad;
  int64_t wait = 1;
  for (int64_t k = 0; k < p.k; k += kQuad, b += step_bytes) {
    if (--wait == 0) {
      for (int64_t i = 0; i < step_bytes; i += kLineBytes) {
        hwy::Prefetch(upcoming.next + i);
      }
      upcoming.next += step_bytes;
      wait = upcoming.every;
    }
    WordVec w[V];
    for (int v = 0; v < V; ++v) {
      w[v] = hn::Xor(LoadWords(b + v * lanes * kQuad), shift);
    }
    for (int r = 0; r < R; ++r) {
      const WordVec x = RepeatQuad(a + r * p.a.stride + k);
      for (int v = 0; v < V; ++v) {
        sum[r][v] = AddQuads(sum[r][v], w[v], x);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    float* out = p.out + (row + r) * p.out_stride + column;
    if (!p.ends) {
      for (int v = 0; v < V; ++v) {
        hn::StoreU(hn::BitCast(f, sum[r][v]), f, out + v * lanes);
      }
      continue;
    }
    const IntegerRow& of_row = p.a.rows[(row + r) * p.a.rows_stride];
    const WordVec excess = hn::Set(d, 128 * of_row.sum);
    const FloatVec scale = hn::Set(f, of_row.scale);
    for (int v = 0; v < V; ++v) {
      const FloatVec exact = hn::ConvertTo(f, hn::Sub(sum[r][v], excess));
      const FloatVec both =
          hn::Mul(scale, hn::LoadU(f, p.b_scales + column + v * lanes));
      hn::StoreU(hn::Mul(exact, both), f, out + v * lanes);
    }
  }
}

// Few rows ask for memory some way ahead; the blocks of more rows together for
// the next panel, which lies behind this one.
HWY_INLINE Upcoming Ahead(const IntegerProduct& p, int64_t block,
                          int64_t blocks) {
  const int64_t steps = p.k / kQuad;
  const int64_t bytes = StepBytes(p);
  if (p.next != nullptr) {
    const int8_t* next = static_cast<const int8_t*>(p.next);
    return {next + block * steps / (2 * blocks) * bytes, 2 * blocks};
  }
  if (blocks == 1) return {p.b + kStepsAhead * bytes, 1};
  return {p.b + (steps + block * steps / blocks) * bytes, blocks};
}

template <int V>
HWY_INLINE void MultiplyColumns(const IntegerProduct& p, int64_t column) {
  constexpr int kTogether = V == 1 ? 2 * kRows : kRows;
  const int64_t blocks = (p.rows + kTogether - 1) / kTogether;
  for (int64_t block = 0; block < blocks; ++block) {
    const Upcoming upcoming = Ahead(p, block, blocks);
    int64_t row = block * kTogether;
    if (p.rows - row >= kTogether) {
      Block<kTogether, V>(p, row, column, upcoming);
      continue;
    }
    for (; p.rows - row >= kRows; row += kRows) {
      Block<kRows, V>(p, row, column, upcoming);
    }
    switch (p.rows - row) {
      case 1:
        Block<1, V>(p, row, column, upcoming);
        break;
      case 2:
        Block<2, V>(p, row, column, upcoming);
        break;
      case 3:
        Block<3, V>(p, row, column, upcoming);
        break;
      case 4:
        Block<4, V>(p, row, column, upcoming);
        break;
      case 5:
        Block<std::min(5, kRows), V>(p, row, column, upcoming);
        break;
      default:
        break;
    }
  }
}

void MultiplyIntegersTarget(const IntegerProduct& p) {
  if (p.columns < kPanel) {
    for (int64_t column = 0; column < p.columns; column += Lanes()) {
      MultiplyColumns<1>(p, column);
    }
    return;
  }
  for (int64_t column = 0; column < kPanel; column += kVectors * Lanes()) {
    MultiplyColumns<kVectors>(p, column);
  }
}

// R rows x V vectors, two sums each. A single row waits for memory: while it
// works on a tile it asks for the next one.
template <int R, int V>
HWY_INLINE void SumBlock(const IntegerSum& p, int64_t row, int64_t column) {
  const WordTag d;
  const FloatTag f;
  const int64_t lanes = Lanes();
  WordVec high[R][V], low[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) high[r][v] = low[r][v] = hn::Zero(d);
  }
  for (int64_t panel = 0; panel < p.panels; ++panel) {
    const int8_t* values = p.tiles[panel] + column * kQuad;
    const int8_t* upcoming =
        p.tiles[std::min(panel + 1, p.panels - 1)] + column * kQuad;
    const int64_t first = row * p.stride + panel * kPanel;
    for (int64_t j = 0; j < kPanel; j += kQuad, values += p.columns * kQuad) {
      if constexpr (R == 1) {
        for (int64_t i = 0; i < V * lanes * kQuad; i += kLineBytes) {
          hwy::Prefetch(upcoming + i);
        }
        upcoming += p.columns * kQuad;
      }
      WordVec value[V];
      for (int v = 0; v < V; ++v) {
        value[v] = LoadWords(values + v * lanes * kQuad);
      }
      for (int r = 0; r < R; ++r) {
        const int64_t at = first + r * p.stride + j;
        const WordVec of_high = RepeatQuad(p.high + at);
        const WordVec of_low = RepeatQuad(p.low + at);
        for (int v = 0; v < V; ++v) {
          high[r][v] = AddQuads(high[r][v], of_high, value[v]);
          low[r][v] = AddQuads(low[r][v], of_low, value[v]);
        }
      }
    }
  }
  // Either sum has 24 bits at most and is a float as it is: only the last
  // additions round. 256 times the upper one has no room in a word.
  const FloatVec upper = hn::Set(f, 256);
  for (int r = 0; r < R; ++r) {
    const FloatVec scale = hn::Set(f, p.scales[row + r]);
    float* out = p.out + (row + r) * p.out_stride + column;
    for (int v = 0; v < V; ++v) {
      const FloatVec sum = hn::Add(hn::Mul(hn::ConvertTo(f, high[r][v]), upper),
                                   hn::ConvertTo(f, low[r][v]));
      hn::StoreU(hn::Mul(sum, scale), f, out + v * lanes);
    }
  }
}

template <int V>
HWY_INLINE void SumColumns(const IntegerSum& p, int64_t column) {
  constexpr int kTogether = V == 1 ? 4 : kRows / 2;
  int64_t row = 0;
  for (; row + kTogether <= p.rows; row += kTogether) {
    SumBlock<kTogether, V>(p, row, column);
  }
  for (; row < p.rows; ++row) SumBlock<1, V>(p, row, column);
}

void SumIntegersTarget(const IntegerSum& p) {
  int64_t column = 0;
  for (; column + kVectors * Lanes() <= p.columns;
       column += kVectors * Lanes()) {
    SumColumns<kVectors>(p, column);
  }
  for (; column < p.columns; column += Lanes()) SumColumns<1>(p, column);
}

void InterleaveTileTarget(const int8_t* rows, int64_t stride, int64_t columns,
                          int8_t* tile) {
  const hn::CappedTag<int8_t, kPanel> d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < kPanel; j += kQuad, rows += kQuad * stride) {
    int64_t column = 0;
    for (; column + whole <= columns; column += whole, tile += whole * kQuad) {
      const int8_t* from = rows + column;
      hn::StoreInterleaved4(hn::LoadU(d, from), hn::LoadU(d, from + stride),
                            hn::LoadU(d, from + 2 * stride),
                            hn::LoadU(d, from + 3 * stride), d, tile);
    }
    for (; column < columns; ++column) {
      for (int64_t i = 0; i < kQuad; ++i) *tile++ = rows[i * stride + column];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "model/cpu/tile_product.h"
#include "model/cpu/vector_target.h"

namespace txl {

HWY_EXPORT(MultiplyIntegersTarget);
HWY_EXPORT(SumIntegersTarget);
HWY_EXPORT(InterleaveTileTarget);

void MultiplyIntegers(const IntegerProduct& product) {
  if (product.rows >= kTileProductRows && UsesTiles()) {
    return MultiplyOnTiles(product);
  }
  HWY_DYNAMIC_DISPATCH(MultiplyIntegersTarget)(product);
}
void SumIntegers(const IntegerSum& sum) {
  if (sum.rows >= kTileSumRows && UsesTiles()) return SumOnTiles(sum);
  HWY_DYNAMIC_DISPATCH(SumIntegersTarget)(sum);
}
void InterleaveTile(const int8_t* rows, int64_t stride, int64_t columns,
                    int8_t* tile) {
  HWY_DYNAMIC_DISPATCH(InterleaveTileTarget)(rows, stride, columns, tile);
}

}  // namespace txl
#endif  // HWY_ONCE
