#include "model/cpu/quantise.h"

#include <algorithm>
#include <cstring>
#include <limits>

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

// The largest magnitude, or NaN where a number is not finite. The bits of
// magnitudes are in the order of what they stand for, with infinity and NaN at
// the end, so that one maximum of words finds both.
HWY_INLINE float LargestMagnitude(const float* x, int64_t count) {
  const FloatTag d;
  const WordTag words;
  WordVec largest = hn::Zero(words);
  ForEachGroup(x, count, [&](int64_t, const float* group) {
    for (int64_t i = 0; i < kColumnGroup; i += Lanes()) {
      const FloatVec magnitude = hn::Abs(hn::LoadU(d, group + i));
      largest = hn::Max(largest, hn::BitCast(words, magnitude));
    }
  });
  const float number =
      hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(words, largest)));
  return number * 0 == 0 ? number : std::numeric_limits<float>::quiet_NaN();
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

float QuantiseWeightsTarget(const IntegerWeights& w) {
  const FloatTag d;
  const WordTag words;
  const hn::Rebind<uint8_t, FloatTag> bytes;
  const float largest = LargestMagnitude(w.weights, w.count);
  if (!(largest >= kSmallest)) {
    std::memset(w.high, 0, static_cast<size_t>(w.count));
    std::memset(w.low, 0, static_cast<size_t>(w.count));
    return largest * 0;
  }
  const FloatVec inverse = hn::Set(d, 65535 / largest);
  const WordVec most_word = hn::Set(words, 65535);
  for (int64_t i = 0; i < w.count; i += Lanes()) {
    const WordVec number =
        hn::Min(hn::NearestInt(hn::Mul(hn::LoadU(d, w.weights + i), inverse)),
                most_word);
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<8>(number)), bytes,
               w.high + i);
    hn::StoreU(hn::DemoteTo(bytes, hn::And(number, hn::Set(words, 255))), bytes,
               w.low + i);
  }
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
