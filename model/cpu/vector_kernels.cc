#include "model/cpu/vector_kernels.h"

#include <algorithm>
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
  // Behind a whole last vector nothing may be read.
  const bool has_tail = whole < columns;
  if (has_tail) {
    sum = hn::Add(sum, hn::IfThenElseZero(tail, hn::LoadU(d, x + i)));
  }
  const float count = static_cast<float>(columns);
  const FloatVec mean = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, sum)) / count);
  FloatVec square = hn::Zero(d);
  for (i = 0; i < whole; i += lanes) {
    const FloatVec c = hn::Sub(hn::LoadU(d, x + i), mean);
    square = hn::MulAdd(c, c, square);
  }
  if (has_tail) {
    const FloatVec c =
        hn::IfThenElseZero(tail, hn::Sub(hn::LoadU(d, x + i), mean));
    square = hn::MulAdd(c, c, square);
  }
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

// Calls call(i, mask) for the vectors of [0, count). Inside of the range the
// mask is not calculated.
template <class Call>
HWY_INLINE void ForEachVisible(const VisibleSpan& range, const Call& call) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto first = [&](int64_t lane) {
    return hn::FirstN(d,
                      static_cast<size_t>(std::clamp<int64_t>(lane, 0, lanes)));
  };
  const int64_t whole_begin = RoundUp(range.begin, lanes);
  const int64_t whole_end = range.end / lanes * lanes;
  const auto all = first(lanes);
  int64_t i = 0;
  const auto masked = [&](int64_t until) {
    for (; i < until; i += lanes) {
      call(i, hn::AndNot(first(range.begin - i), first(range.end - i)));
    }
  };
  masked(std::min(whole_begin, range.count));
  for (; i < whole_end; i += lanes) call(i, all);
  masked(range.count);
}

SoftmaxPart SoftmaxWeightsTarget(float* content, const float* position,
                                 float scale, const VisibleSpan& range,
                                 const float* const* value_scales) {
  const FloatTag d;
  const FloatVec lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const FloatVec factor = hn::Set(d, scale);
  FloatVec largest = lowest;
  ForEachVisible(range, [&](int64_t i, auto visible) {
    const FloatVec score = hn::IfThenElse(
        visible,
        hn::Mul(hn::Add(hn::LoadU(d, content + i), hn::LoadU(d, position + i)),
                factor),
        lowest);
    hn::StoreU(score, d, content + i);
    largest = hn::Max(largest, score);
  });
  const FloatVec top = hn::MaxOfLanes(d, largest);
  FloatVec sum = hn::Zero(d);
  ForEachVisible(range, [&](int64_t i, auto visible) {
    const FloatVec weight = hn::IfThenElseZero(
        visible, hn::Exp(d, hn::Sub(hn::LoadU(d, content + i), top)));
    sum = hn::Add(sum, weight);
    const FloatVec factor_of_value =
        value_scales == nullptr
            ? hn::Set(d, 1)
            : hn::LoadU(d, value_scales[i / kPanel] + i % kPanel);
    hn::StoreU(hn::IfThenElseZero(visible, hn::Mul(weight, factor_of_value)), d,
               content + i);
  });
  return {hn::GetLane(top), hn::GetLane(hn::SumOfLanes(d, sum))};
}

void BlendRowsTarget(const WeightedRow& a, const WeightedRow& b,
                     int64_t columns, float* out) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const FloatVec of_a = hn::Set(d, a.weight);
  const FloatVec of_b = hn::Set(d, b.weight);
  for (int64_t i = 0; i < columns; i += lanes) {
    const FloatVec first = hn::Mul(of_a, hn::LoadU(d, a.data + i));
    hn::StoreU(hn::MulAdd(of_b, hn::LoadU(d, b.data + i), first), d, out + i);
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

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace txl {

HWY_EXPORT(FinishRowTarget);
HWY_EXPORT(NormalizeRowTarget);
HWY_EXPORT(SoftmaxWeightsTarget);
HWY_EXPORT(BlendRowsTarget);
HWY_EXPORT(AddRowsTarget);
HWY_EXPORT(LogSumExpTarget);
HWY_EXPORT(ShiftRowTarget);

void FinishRow(const RowEpilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(FinishRowTarget)(epilogue);
}
void NormalizeRow(const float* x, int64_t columns, const float* g,
                  const float* b, float eps, float* out) {
  HWY_DYNAMIC_DISPATCH(NormalizeRowTarget)(x, columns, g, b, eps, out);
}
SoftmaxPart SoftmaxWeights(float* content, const float* position, float scale,
                           const VisibleSpan& visible,
                           const float* const* value_scales) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxWeightsTarget)(content, position, scale,
                                                    visible, value_scales);
}
void BlendRows(const WeightedRow& a, const WeightedRow& b, int64_t columns,
               float* out) {
  HWY_DYNAMIC_DISPATCH(BlendRowsTarget)(a, b, columns, out);
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

}  // namespace txl
#endif  // HWY_ONCE
