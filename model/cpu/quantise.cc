#include "model/cpu/quantise.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/quantise.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a column group is whole vectors.
using FloatTag = hn::CappedTag<float, kColumnGroup>;
using FloatVec = hn::Vec<FloatTag>;
using WordTag = hn::RebindToSigned<FloatTag>;
using WordVec = hn::Vec<WordTag>;

inline int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

// call(at, x) for every group of kColumnGroup numbers; behind the last number
// come zeros.
template <class Call>
HWY_INLINE void ForEachGroup(const float* x, int64_t count, const Call& call) {
  int64_t i = 0;
  for (; i + kColumnGroup <= count; i += kColumnGroup) call(i, x + i);
  if (i == count) return;
  float rest[kColumnGroup] = {};
  std::copy_n(x + i, count - i, rest);
  call(i, rest);
}

// The largest magnitude, or NaN where a number is not finite.
HWY_INLINE float LargestMagnitude(const float* x, int64_t count) {
  const FloatTag d;
  FloatVec largest = hn::Zero(d);
  FloatVec nothing = hn::Zero(d);
  ForEachGroup(x, count, [&](int64_t, const float* group) {
    for (int64_t i = 0; i < kColumnGroup; i += Lanes()) {
      const FloatVec number = hn::LoadU(d, group + i);
      largest = hn::Max(largest, hn::Abs(number));
      nothing = hn::Add(nothing, hn::Mul(number, hn::Zero(d)));
    }
  });
  return hn::GetLane(hn::MaxOfLanes(d, largest)) +
         hn::GetLane(hn::SumOfLanes(d, nothing));
}

// Below this a row counts as zeros: its inverse would not be finite.
constexpr float kSmallest = 1e-30f;

float ScaleOfTarget(const float* x, int64_t count) {
  const float largest = LargestMagnitude(x, count);
  return largest >= kSmallest ? largest / 127 : largest * 0;
}

int32_t QuantiseByTarget(const float* x, int64_t count, float scale,
                         int8_t* out) {
  const FloatTag d;
  const WordTag words;
  const hn::Rebind<int8_t, FloatTag> bytes;
  if (!(scale > 0)) {
    std::memset(out, 0, static_cast<size_t>(RoundUp(count, kColumnGroup)));
    return 0;
  }
  const FloatVec inverse = hn::Set(d, 1 / scale);
  WordVec sum = hn::Zero(words);
  ForEachGroup(x, count, [&](int64_t at, const float* group) {
    for (int64_t i = 0; i < kColumnGroup; i += Lanes()) {
      const WordVec number =
          hn::NearestInt(hn::Mul(hn::LoadU(d, group + i), inverse));
      sum = hn::Add(sum, number);
      hn::StoreU(hn::DemoteTo(bytes, number), bytes, out + at + i);
    }
  });
  return hn::GetLane(hn::SumOfLanes(words, sum));
}

void RestoreRowTarget(const int8_t* numbers, float scale, int64_t count,
                      float* x) {
  const FloatTag d;
  const hn::Rebind<int8_t, FloatTag> bytes;
  const WordTag words;
  const FloatVec factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + Lanes() <= count; i += Lanes()) {
    const WordVec number = hn::PromoteTo(words, hn::LoadU(bytes, numbers + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, number), factor), d, x + i);
  }
  for (; i < count; ++i) x[i] = static_cast<float>(numbers[i]) * scale;
}

// call(panel, lane, product) for the vectors of weights times scales.
template <class Call>
HWY_INLINE void ForEachProduct(const IntegerWeights& w, const Call& call) {
  const FloatTag d;
  for (int64_t panel = 0; panel < w.panels; ++panel) {
    const float* weights = w.weights + panel * kPanel;
    for (int64_t i = 0; i < kPanel; i += Lanes()) {
      const FloatVec weight = hn::LoadU(d, weights + i);
      const FloatVec product =
          hn::Mul(weight, hn::LoadU(d, w.scales[panel] + i));
      call(panel * kPanel + i,
           hn::IfThenElse(hn::Eq(weight, hn::Zero(d)), hn::Zero(d), product));
    }
  }
}

float QuantiseWeightsTarget(const IntegerWeights& w) {
  const FloatTag d;
  const WordTag words;
  const hn::Rebind<uint8_t, FloatTag> bytes;
  FloatVec most = hn::Zero(d);
  FloatVec nothing = hn::Zero(d);
  ForEachProduct(w, [&](int64_t, FloatVec product) {
    most = hn::Max(most, product);
    nothing = hn::Add(nothing, hn::Mul(product, hn::Zero(d)));
  });
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most)) +
                        hn::GetLane(hn::SumOfLanes(d, nothing));
  if (!(largest >= kSmallest)) {
    std::memset(w.high, 0, static_cast<size_t>(w.panels * kPanel));
    std::memset(w.low, 0, static_cast<size_t>(w.panels * kPanel));
    return largest * 0;
  }
  const FloatVec inverse = hn::Set(d, 65535 / largest);
  const WordVec most_word = hn::Set(words, 65535);
  ForEachProduct(w, [&](int64_t at, FloatVec product) {
    const WordVec number =
        hn::Min(hn::NearestInt(hn::Mul(product, inverse)), most_word);
    const WordVec high = hn::ShiftRight<8>(number);
    hn::StoreU(hn::DemoteTo(bytes, high), bytes, w.high + at);
    hn::StoreU(hn::DemoteTo(bytes, hn::And(number, hn::Set(words, 255))), bytes,
               w.low + at);
  });
  return largest / 65535;
}

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace txl {

HWY_EXPORT(ScaleOfTarget);
HWY_EXPORT(QuantiseByTarget);
HWY_EXPORT(RestoreRowTarget);
HWY_EXPORT(QuantiseWeightsTarget);

float ScaleOf(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(ScaleOfTarget)(x, count);
}
int32_t QuantiseBy(const float* x, int64_t count, float scale, int8_t* out) {
  return HWY_DYNAMIC_DISPATCH(QuantiseByTarget)(x, count, scale, out);
}
IntegerRow QuantiseRow(const float* x, int64_t count, int8_t* out) {
  const float scale = ScaleOf(x, count);
  return {scale, QuantiseBy(x, count, scale, out)};
}
void RestoreRow(const int8_t* numbers, float scale, int64_t count, float* x) {
  HWY_DYNAMIC_DISPATCH(RestoreRowTarget)(numbers, scale, count, x);
}
float QuantiseWeights(const IntegerWeights& weights) {
  return HWY_DYNAMIC_DISPATCH(QuantiseWeightsTarget)(weights);
}

}  // namespace txl
#endif  // HWY_ONCE
