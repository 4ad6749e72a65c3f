#include "model/cpu/panel_product.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/panel_product.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a column group is whole vectors.
using FloatTag = hn::CappedTag<float, kColumnGroup>;
using FloatVec = hn::Vec<FloatTag>;

inline FloatVec LoadWide(const float* p) { return hn::LoadU(FloatTag(), p); }
inline FloatVec LoadWide(const hwy::bfloat16_t* p) {
  const hn::Rebind<hwy::bfloat16_t, FloatTag> half;
  return hn::PromoteTo(FloatTag(), hn::LoadU(half, p));
}
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || \
    HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
// These have no instructions for half precision, and Highway's stand-ins for
// them round towards zero and know neither infinities nor NaN.
constexpr bool kHasHalf = false;
#else
constexpr bool kHasHalf = true;
#endif

// The exponent moves from a bias of 15 to one of 127 by a product, which is
// exact and takes subnormal numbers along.
inline FloatVec WidenHalfBits(const uint16_t* p) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> words;
  const hn::Rebind<uint16_t, FloatTag> halves;
  const auto bits = hn::PromoteTo(words, hn::LoadU(halves, p));
  const auto magnitude = hn::And(bits, hn::Set(words, 0x7fffu));
  const auto number = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)),
                              hn::BitCast(d, hn::Set(words, 0x77800000u)));
  const auto special = hn::IfThenElseZero(
      hn::Gt(magnitude, hn::Set(words, 0x7bffu)), hn::Set(words, 0x7f800000u));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(words, 0x8000u)));
  return hn::BitCast(d,
                     hn::Or(hn::Or(hn::BitCast(words, number), special), sign));
}

inline FloatVec LoadWide(const hwy::float16_t* p) {
  if constexpr (!kHasHalf) {
    return WidenHalfBits(reinterpret_cast<const uint16_t*>(p));
  } else {
    const hn::Rebind<hwy::float16_t, FloatTag> half;
    return hn::PromoteTo(FloatTag(), hn::LoadU(half, p));
  }
}
inline FloatVec LoadWide(const int8_t* p) {
  const hn::Rebind<int8_t, FloatTag> bytes;
  const hn::Rebind<int32_t, FloatTag> words;
  return hn::ConvertTo(FloatTag(), hn::PromoteTo(words, hn::LoadU(bytes, p)));
}

// Few rows wait for memory, and the processor's own prefetcher stops at every
// page: so they ask for the lines some way ahead. More rows than registers hold
// take the weights in chunks, and ask for the next chunk during all of this
// one, so that memory works meanwhile. A prompt's many rows, which hardly wait
// for memory, take larger ones: a row's own numbers are read in longer pieces
// then.
constexpr int64_t kLineBytes = 64;
constexpr int64_t kLinesAhead = 32;
constexpr int64_t kFewRows = 64;
constexpr int64_t kFewRowsChunkBytes = 16 << 10;
constexpr int64_t kChunkBytes = 64 << 10;

// The lines of V vectors at b.
template <int V, typename T>
HWY_INLINE void PrefetchLines(const T* b) {
  constexpr int64_t kBytes = V * kColumnGroup * static_cast<int64_t>(sizeof(T));
  const char* line = reinterpret_cast<const char*>(b);
  for (int64_t i = 0; i < kBytes; i += kLineBytes) hwy::Prefetch(line + i);
}

// A block asks memory for a row of b at `next` in its first step, and for the
// row behind it in every `steps`-th, so that memory works while it does.
template <typename T>
struct Upcoming {
  const T* next = nullptr;
  int64_t steps = 1;
};

// R rows x V vectors, all accumulators in registers.
template <int R, int V, typename T>
HWY_INLINE void Block(const PanelProduct& p, const float* a, const T* b,
                      float* out, Upcoming<T> upcoming) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  FloatVec sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      sum[r][v] = p.accumulate
                      ? hn::LoadU(d, out + r * p.out_stride + v * lanes)
                      : hn::Zero(d);
    }
  }
  int64_t wait = 1;
  for (int64_t k = 0; k < p.k; ++k, b += p.b_stride) {
    if (--wait == 0) {
      PrefetchLines<V>(upcoming.next);
      upcoming.next += p.b_stride;
      wait = upcoming.steps;
    }
    FloatVec w[V];
    for (int v = 0; v < V; ++v) w[v] = LoadWide(b + v * lanes);
    for (int r = 0; r < R; ++r) {
      const FloatVec x = hn::Set(d, a[r * p.a_stride + k]);
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(x, w[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      hn::StoreU(sum[r][v], d, out + r * p.out_stride + v * lanes);
    }
  }
}

// Rows of a block: what the registers hold beside V weights and a factor.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
template <int V>
constexpr int64_t kBlockRows = V == 4   ? 2
                               : V == 2 ? 5
                                        : 8;
#else
template <int V>
constexpr int64_t kBlockRows = V == 4 ? 6 : 8;
#endif

// All rows of a strip of V vectors; together the blocks ask for the p.k rows of
// b from `next` on.
template <int V, typename T>
HWY_INLINE void Blocks(const PanelProduct& p, const T* b, float* out,
                       const T* next) {
  constexpr int64_t kRows = kBlockRows<V>;
  const int64_t blocks = (p.rows + kRows - 1) / kRows;
  const auto upcoming = [&](int64_t block) {
    return Upcoming<T>{next + block * p.k / blocks * p.b_stride, blocks};
  };
  int64_t r = 0;
  for (; r + kRows <= p.rows; r += kRows) {
    Block<kRows, V>(p, p.a + r * p.a_stride, b, out + r * p.out_stride,
                    upcoming(r / kRows));
  }
  const float* a = p.a + r * p.a_stride;
  float* o = out + r * p.out_stride;
  const Upcoming<T> last = upcoming(blocks - 1);
  switch (p.rows - r) {
    case 7:
      return Block<7, V>(p, a, b, o, last);
    case 6:
      return Block<6, V>(p, a, b, o, last);
    case 5:
      return Block<5, V>(p, a, b, o, last);
    case 4:
      return Block<4, V>(p, a, b, o, last);
    case 3:
      return Block<3, V>(p, a, b, o, last);
    case 2:
      return Block<2, V>(p, a, b, o, last);
    case 1:
      return Block<1, V>(p, a, b, o, last);
    default:
      return;
  }
}

// A strip of V vectors. What many rows have summed up lies in `out` between two
// chunks, exactly, so that every chain of sums goes on as without them.
template <int V, typename T>
HWY_INLINE void Strip(const PanelProduct& p, const T* b, float* out) {
  constexpr int64_t kRowBytes =
      V * kColumnGroup * static_cast<int64_t>(sizeof(T));
  if (p.rows <= kBlockRows<V>) {
    constexpr int64_t kAhead = kLinesAhead * kLineBytes / kRowBytes;
    return Blocks<V>(p, b, out, b + kAhead * p.b_stride);
  }
  const int64_t bytes = p.rows <= kFewRows ? kFewRowsChunkBytes : kChunkBytes;
  PanelProduct chunk = p;
  for (int64_t k = 0; k < p.k; k += chunk.k) {
    chunk.k = std::min(bytes / kRowBytes, p.k - k);
    chunk.a = p.a + k;
    const T* at = b + k * p.b_stride;
    Blocks<V>(chunk, at, out, at + chunk.k * p.b_stride);
    chunk.accumulate = true;
  }
}

// call(numbers), typed as they are stored.
template <class Call>
void WithTyped(NumberFormat format, const void* numbers, const Call& call) {
  switch (format) {
    case NumberFormat::kF32:
      return call(static_cast<const float*>(numbers));
    case NumberFormat::kBF16:
      return call(static_cast<const hwy::bfloat16_t*>(numbers));
    case NumberFormat::kF16:
      return call(static_cast<const hwy::float16_t*>(numbers));
    case NumberFormat::kInt8:
      return call(static_cast<const int8_t*>(numbers));
    case NumberFormat::kInt4:
      return;  // int4_panel.h unpacks them
  }
}

template <typename T>
void MultiplyTyped(const PanelProduct& p, const T* b) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  int64_t c = 0;
  for (; c + 4 * lanes <= p.columns; c += 4 * lanes) {
    Strip<4>(p, b + c, p.out + c);
  }
  for (; c + 2 * lanes <= p.columns; c += 2 * lanes) {
    Strip<2>(p, b + c, p.out + c);
  }
  for (; c < p.columns; c += lanes) Strip<1>(p, b + c, p.out + c);
}

void MultiplyPanelTarget(const PanelProduct& p) {
  WithTyped(p.b_format, p.b, [&](const auto* b) { MultiplyTyped(p, b); });
}

// R rows of a with four rows of b, all sums in registers.
template <int R, typename T>
HWY_INLINE void DotBlock(const PanelProduct& p, const float* a, const T* b,
                         float* out) {
  constexpr int kColumns = 4;
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  FloatVec sum[R][kColumns];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < kColumns; ++c) sum[r][c] = hn::Zero(d);
  }
  const bool first = a == p.a;
  for (int64_t k = 0; k < p.k; k += lanes) {
    FloatVec w[kColumns];
    for (int c = 0; c < kColumns; ++c) w[c] = LoadWide(b + c * p.b_stride + k);
    // The next four rows, which lie behind these.
    for (int c = 0; first && c < kColumns; ++c) {
      hwy::Prefetch(b + (kColumns + c) * p.b_stride + k);
    }
    for (int r = 0; r < R; ++r) {
      const FloatVec x = hn::LoadU(d, a + r * p.a_stride + k);
      for (int c = 0; c < kColumns; ++c) {
        sum[r][c] = hn::MulAdd(x, w[c], sum[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      out[r * p.out_stride + c] = hn::GetLane(hn::SumOfLanes(d, sum[r][c]));
    }
  }
}

template <typename T>
void MultiplyRowsTyped(const PanelProduct& p, const T* rows) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  constexpr int kRows = 2;  // as many sums as there are registers
#else
  constexpr int kRows = 4;
#endif
  for (int64_t c = 0; c < p.columns; c += 4) {
    const T* b = rows + c * p.b_stride;
    int64_t r = 0;
    for (; r + kRows <= p.rows; r += kRows) {
      DotBlock<kRows>(p, p.a + r * p.a_stride, b, p.out + r * p.out_stride + c);
    }
    for (; r < p.rows; ++r) {
      DotBlock<1>(p, p.a + r * p.a_stride, b, p.out + r * p.out_stride + c);
    }
  }
}

void MultiplyRowsTarget(const PanelProduct& p) {
  WithTyped(p.b_format, p.b, [&](const auto* b) { MultiplyRowsTyped(p, b); });
}

inline uint16_t RoundToBF16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1);
  return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded >> 16);
}

// Rounds to nearest, ties to even.
inline uint16_t RoundToF16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Subnormal: beside 0.5 the last place is 2^-24, as theirs is.
    float shifted;
    std::memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5f;
    std::memcpy(&magnitude, &shifted, sizeof(magnitude));
    return static_cast<uint16_t>(sign | (magnitude - 0x3f000000u));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((magnitude - (112u << 23)) >> 13));
}

template <class D>
int64_t NarrowToHalf(D d, const float* x, int64_t count, hwy::float16_t* out) {
  const hn::Rebind<hwy::float16_t, D> half;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, x + i)), half, out + i);
  }
  return i;
}

void NarrowRowTarget(const float* x, int64_t count, NumberFormat format,
                     void* out) {
  if (format == NumberFormat::kF32) {
    std::memcpy(out, x, static_cast<size_t>(count) * sizeof(float));
  } else if (format == NumberFormat::kF16 && !kHasHalf) {
    uint16_t* to = static_cast<uint16_t*>(out);
    for (int64_t i = 0; i < count; ++i) to[i] = RoundToF16(x[i]);
  } else if (format == NumberFormat::kF16) {
    hwy::float16_t* to = static_cast<hwy::float16_t*>(out);
    const int64_t done = NarrowToHalf(FloatTag(), x, count, to);
    NarrowToHalf(hn::CappedTag<float, 1>(), x + done, count - done, to + done);
  } else {
    uint16_t* to = static_cast<uint16_t*>(out);
    for (int64_t i = 0; i < count; ++i) to[i] = RoundToBF16(x[i]);
  }
}

template <typename T>
void WidenTyped(const T* x, int64_t count, float* out) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(LoadWide(x + i), d, out + i);
  if (i == count) return;
  T rest[kColumnGroup] = {};
  float wide[kColumnGroup];
  std::copy_n(x + i, count - i, rest);
  hn::StoreU(LoadWide(rest), d, wide);
  std::copy_n(wide, count - i, out + i);
}

void WidenRowTarget(const void* x, NumberFormat format, int64_t count,
                    float* out) {
  WithTyped(format, x, [&](const auto* row) { WidenTyped(row, count, out); });
}

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace txl {

HWY_EXPORT(MultiplyPanelTarget);
HWY_EXPORT(MultiplyRowsTarget);
HWY_EXPORT(NarrowRowTarget);
HWY_EXPORT(WidenRowTarget);

void MultiplyPanel(const PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanelTarget)(product);
}
void MultiplyRows(const PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyRowsTarget)(product);
}
void NarrowRow(const float* x, int64_t count, NumberFormat format, void* out) {
  HWY_DYNAMIC_DISPATCH(NarrowRowTarget)(x, count, format, out);
}
void WidenRow(const void* x, NumberFormat format, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(WidenRowTarget)(x, format, count, out);
}

}  // namespace txl
#endif  // HWY_ONCE
