#include "model/cpu/vector_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/vector_kernels.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/contrib/math/math-inl.h>
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
inline FloatVec LoadWide(const hwy::float16_t* p) {
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  return hn::PromoteTo(FloatTag(), hn::LoadU(half, p));
}
inline FloatVec LoadWide(const int8_t* p) {
  const hn::Rebind<int8_t, FloatTag> bytes;
  const hn::Rebind<int32_t, FloatTag> words;
  return hn::ConvertTo(FloatTag(), hn::PromoteTo(words, hn::LoadU(bytes, p)));
}

// R rows x V vectors, all accumulators in registers.
template <int R, int V, typename T>
HWY_INLINE void Block(const PanelProduct& p, const float* a, const T* b,
                      float* out) {
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
  for (int64_t k = 0; k < p.k; ++k, b += p.b_stride) {
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

// All rows of one strip of V vectors.
template <int V, typename T>
HWY_INLINE void Strip(const PanelProduct& p, const T* b, float* out) {
  // As many rows as the registers hold beside V weights and a factor.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  constexpr int64_t kRows = V == 4 ? 2 : V == 2 ? 5 : 8;
#else
  constexpr int64_t kRows = V == 4 ? 6 : 8;
#endif
  int64_t r = 0;
  for (; r + kRows <= p.rows; r += kRows) {
    Block<kRows, V>(p, p.a + r * p.a_stride, b, out + r * p.out_stride);
  }
  const float* a = p.a + r * p.a_stride;
  float* o = out + r * p.out_stride;
  switch (p.rows - r) {
    case 7:
      return Block<7, V>(p, a, b, o);
    case 6:
      return Block<6, V>(p, a, b, o);
    case 5:
      return Block<5, V>(p, a, b, o);
    case 4:
      return Block<4, V>(p, a, b, o);
    case 3:
      return Block<3, V>(p, a, b, o);
    case 2:
      return Block<2, V>(p, a, b, o);
    case 1:
      return Block<1, V>(p, a, b, o);
    default:
      return;
  }
}

template <typename T>
void MultiplyTyped(const PanelProduct& p) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  const T* b = static_cast<const T*>(p.b);
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
  switch (p.b_format) {
    case NumberFormat::kF32:
      return MultiplyTyped<float>(p);
    case NumberFormat::kBF16:
      return MultiplyTyped<hwy::bfloat16_t>(p);
    case NumberFormat::kF16:
      return MultiplyTyped<hwy::float16_t>(p);
    case NumberFormat::kInt8:
      return MultiplyTyped<int8_t>(p);
  }
}

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), arXiv:1606.08415, with
// tanh z = 1 - 2 / (exp(2 z) + 1).
inline FloatVec GeluTanh(FloatVec x) {
  const FloatTag d;
  const FloatVec cube = hn::Mul(hn::Mul(x, x), x);
  const FloatVec inner = hn::Mul(hn::Set(d, 0.7978845608028654f),
                                 hn::MulAdd(hn::Set(d, 0.044715f), cube, x));
  // exp overflows to infinity only where tanh is 1 to the last bit.
  const FloatVec twice = hn::Min(hn::Add(inner, inner), hn::Set(d, 80.0f));
  const FloatVec e = hn::Exp(d, hn::Max(twice, hn::Set(d, -80.0f)));
  const FloatVec one = hn::Set(d, 1.0f);
  const FloatVec tanh =
      hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), hn::Add(one, tanh));
}

void FinishRowTarget(const RowEpilogue& e) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < e.columns; i += lanes) {
    FloatVec x = hn::LoadU(d, e.out + i);
    if (e.scale != nullptr) x = hn::Mul(x, hn::LoadU(d, e.scale + i));
    if (e.bias != nullptr) x = hn::Add(x, hn::LoadU(d, e.bias + i));
    switch (e.activation) {
      case RowActivation::kNone:
        break;
      // NaN stays NaN: a bad number must be seen, not turned into 0.
      case RowActivation::kRelu:
        x = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
        break;
      case RowActivation::kGeluTanh:
        x = GeluTanh(x);
        break;
    }
    if (e.residual != nullptr) x = hn::Add(x, hn::LoadU(d, e.residual + i));
    hn::StoreU(x, d, e.out + i);
  }
}

void NormalizeRowTarget(const float* x, int64_t columns, const float* g,
                        const float* b, float eps, float* out) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = columns / lanes * lanes;
  const auto tail = hn::FirstN(d, static_cast<size_t>(columns - whole));
  FloatVec sum = hn::Zero(d);
  int64_t i = 0;
  for (; i < whole; i += lanes) sum = hn::Add(sum, hn::LoadU(d, x + i));
  sum = hn::Add(sum, hn::IfThenElseZero(tail, hn::LoadU(d, x + i)));
  const float count = static_cast<float>(columns);
  const FloatVec mean = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, sum)) / count);
  FloatVec square = hn::Zero(d);
  for (i = 0; i < whole; i += lanes) {
    const FloatVec c = hn::Sub(hn::LoadU(d, x + i), mean);
    square = hn::MulAdd(c, c, square);
  }
  const FloatVec c =
      hn::IfThenElseZero(tail, hn::Sub(hn::LoadU(d, x + i), mean));
  square = hn::MulAdd(c, c, square);
  const FloatVec variance =
      hn::Set(d, hn::GetLane(hn::SumOfLanes(d, square)) / count + eps);
  const FloatVec scale = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(variance));
  for (i = 0; i < whole; i += lanes) {
    const FloatVec n = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), scale);
    hn::StoreU(hn::MulAdd(n, hn::LoadU(d, g + i), hn::LoadU(d, b + i)), d,
               out + i);
  }
  const int64_t end = RoundUp(columns, kColumnGroup);
  for (; i < end; i += lanes) {
    const auto keep =
        hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(columns - i, 0)));
    const FloatVec n = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), scale);
    hn::StoreU(hn::IfThenElseZero(keep, hn::MulAdd(n, hn::LoadU(d, g + i),
                                                   hn::LoadU(d, b + i))),
               d, out + i);
  }
}

float SoftmaxWeightsTarget(float* content, const float* position, float scale,
                           int64_t begin, int64_t end, int64_t count) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const FloatVec lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto visible = [&](int64_t i) {
    const auto before = hn::FirstN(
        d, static_cast<size_t>(std::clamp<int64_t>(begin - i, 0, lanes)));
    const auto upto = hn::FirstN(
        d, static_cast<size_t>(std::clamp<int64_t>(end - i, 0, lanes)));
    return hn::AndNot(before, upto);
  };
  const FloatVec factor = hn::Set(d, scale);
  FloatVec largest = lowest;
  for (int64_t i = 0; i < count; i += lanes) {
    const FloatVec score = hn::IfThenElse(
        visible(i),
        hn::Mul(hn::Add(hn::LoadU(d, content + i), hn::LoadU(d, position + i)),
                factor),
        lowest);
    hn::StoreU(score, d, content + i);
    largest = hn::Max(largest, score);
  }
  const FloatVec top = hn::MaxOfLanes(d, largest);
  FloatVec sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const FloatVec weight = hn::IfThenElseZero(
        visible(i), hn::Exp(d, hn::Sub(hn::LoadU(d, content + i), top)));
    hn::StoreU(weight, d, content + i);
    sum = hn::Add(sum, weight);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void ScaleRowTarget(float* x, int64_t columns, float factor) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const FloatVec f = hn::Set(d, factor);
  for (int64_t i = 0; i < columns; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, x + i);
  }
}

void AddRowsTarget(const float* a, const float* b, int64_t columns,
                   float* out) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < columns; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
}

float LogSumExpTarget(const float* x, int64_t count) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const FloatVec lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto inside = [&](int64_t i) {
    return hn::FirstN(d, static_cast<size_t>(std::min(count - i, lanes)));
  };
  FloatVec largest = lowest;
  for (int64_t i = 0; i < count; i += lanes) {
    largest = hn::Max(largest,
                      hn::IfThenElse(inside(i), hn::LoadU(d, x + i), lowest));
  }
  const FloatVec top = hn::MaxOfLanes(d, largest);
  FloatVec sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) {
    sum = hn::Add(
        sum, hn::IfThenElseZero(inside(i),
                                hn::Exp(d, hn::Sub(hn::LoadU(d, x + i), top))));
  }
  return hn::GetLane(hn::Add(top, hn::Log(d, hn::SumOfLanes(d, sum))));
}

void ShiftRowTarget(float* x, int64_t count, float shift) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const FloatVec s = hn::Set(d, shift);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), s), d, x + i);
  }
  for (; i < count; ++i) x[i] += shift;
}

inline uint16_t RoundToBF16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1);
  return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded >> 16);
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
  switch (format) {
    case NumberFormat::kF32:
      return WidenTyped(static_cast<const float*>(x), count, out);
    case NumberFormat::kBF16:
      return WidenTyped(static_cast<const hwy::bfloat16_t*>(x), count, out);
    case NumberFormat::kF16:
      return WidenTyped(static_cast<const hwy::float16_t*>(x), count, out);
    case NumberFormat::kInt8:
      return WidenTyped(static_cast<const int8_t*>(x), count, out);
  }
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace txl {

HWY_EXPORT(MultiplyPanelTarget);
HWY_EXPORT(FinishRowTarget);
HWY_EXPORT(NormalizeRowTarget);
HWY_EXPORT(SoftmaxWeightsTarget);
HWY_EXPORT(ScaleRowTarget);
HWY_EXPORT(AddRowsTarget);
HWY_EXPORT(LogSumExpTarget);
HWY_EXPORT(ShiftRowTarget);
HWY_EXPORT(NarrowRowTarget);
HWY_EXPORT(WidenRowTarget);
HWY_EXPORT(TargetName);

void MultiplyPanel(const PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanelTarget)(product);
}
void FinishRow(const RowEpilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(FinishRowTarget)(epilogue);
}
void NormalizeRow(const float* x, int64_t columns, const float* g,
                  const float* b, float eps, float* out) {
  HWY_DYNAMIC_DISPATCH(NormalizeRowTarget)(x, columns, g, b, eps, out);
}
float SoftmaxWeights(float* content, const float* position, float scale,
                     int64_t begin, int64_t end, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxWeightsTarget)(content, position, scale,
                                                    begin, end, count);
}
void ScaleRow(float* x, int64_t columns, float factor) {
  HWY_DYNAMIC_DISPATCH(ScaleRowTarget)(x, columns, factor);
}
void AddRows(const float* a, const float* b, int64_t columns, float* out) {
  HWY_DYNAMIC_DISPATCH(AddRowsTarget)(a, b, columns, out);
}
float LogSumExp(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(LogSumExpTarget)(x, count);
}
void ShiftRow(float* x, int64_t count, float shift) {
  HWY_DYNAMIC_DISPATCH(ShiftRowTarget)(x, count, shift);
}
void NarrowRow(const float* x, int64_t count, NumberFormat format, void* out) {
  HWY_DYNAMIC_DISPATCH(NarrowRowTarget)(x, count, format, out);
}
void WidenRow(const void* x, NumberFormat format, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(WidenRowTarget)(x, format, count, out);
}
std::string VectorTarget() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace txl
#endif  // HWY_ONCE
