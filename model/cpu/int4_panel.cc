#include "model/cpu/int4_panel.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/int4_panel.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a panel is whole vectors. A lane is a quad: four
// numbers of one output.
using QuadTag = hn::CappedTag<uint32_t, kColumnGroup>;
using QuadVec = hn::Vec<QuadTag>;

inline int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(QuadTag())); }

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
// Products of 32 bits take x86 twice as long as those of 16.
inline QuadVec Factor(QuadVec step) {
  return hn::Or(step, hn::ShiftLeft<16>(step));
}
inline QuadVec TimesFactor(QuadVec codes, QuadVec factor) {
  const hn::Repartition<uint16_t, QuadTag> halves;
  return hn::BitCast(QuadTag(), hn::Mul(hn::BitCast(halves, codes),
                                        hn::BitCast(halves, factor)));
}
inline QuadVec AddBytes(QuadVec a, QuadVec b) {
  const hn::Repartition<uint8_t, QuadTag> bytes;
  return hn::BitCast(QuadTag(),
                     hn::Add(hn::BitCast(bytes, a), hn::BitCast(bytes, b)));
}
#else
inline QuadVec Factor(QuadVec step) { return step; }
inline QuadVec TimesFactor(QuadVec codes, QuadVec factor) {
  return hn::Mul(codes, factor);
}
// The upper bits apart, so that nothing is carried into the next byte.
inline QuadVec AddBytes(QuadVec a, QuadVec b) {
  const auto lower = hn::Set(QuadTag(), 0x7f7f7f7fu);
  return hn::Xor(hn::Add(hn::And(a, lower), hn::And(b, lower)),
                 hn::AndNot(lower, hn::Xor(a, b)));
}
#endif

// What makes numbers of the codes of one group, output by output.
struct GroupVec {
  explicit GroupVec(const uint8_t* bytes) {
    const QuadTag d;
    const hn::Rebind<uint8_t, QuadTag> narrow;
    const QuadVec both = hn::PromoteTo(d, hn::LoadU(narrow, bytes));
    const QuadVec step = hn::And(both, hn::Set(d, 15u));
    factor = Factor(step);
    // -zero * step, in each byte.
    QuadVec byte = hn::Mul(hn::ShiftRight<4>(both), step);
    byte = hn::And(hn::Sub(hn::Zero(d), byte), hn::Set(d, 255u));
    byte = hn::Or(byte, hn::ShiftLeft<8>(byte));
    offset = hn::Or(byte, hn::ShiftLeft<16>(byte));
  }
  // A product of a code and a step is below 256, so that none of a quad's
  // reaches into the next one.
  QuadVec Numbers(QuadVec codes) const {
    const QuadVec low = hn::And(codes, hn::Set(QuadTag(), 0x0f0f0f0fu));
    return AddBytes(TimesFactor(low, factor), offset);
  }

  QuadVec factor, offset;
};

// Memory is asked for groups so far ahead: unpacked numbers are used at once,
// and no product waits meanwhile.
constexpr int64_t kGroupsAhead = 3;
constexpr int64_t kLineBytes = 64;

// call(quad, column, numbers) for all vectors of quads.
template <class Call>
HWY_INLINE void ForEachQuad(const uint8_t* panel, int64_t groups,
                            const Call& call) {
  const QuadTag d;
  for (int64_t g = 0; g < groups; ++g, panel += kInt4GroupBytes) {
    const int64_t quad = g * (kInt4Group / 4);
    const uint8_t* ahead = panel + kGroupsAhead * kInt4GroupBytes;
    for (int64_t i = 0; i < kInt4GroupBytes; i += kLineBytes) {
      hwy::Prefetch(ahead + i);
    }
    for (int64_t column = 0; column < kPanel; column += Lanes()) {
      const GroupVec group(panel + column);
      const uint8_t* codes = panel + kPanel + column * 4;
      for (int64_t i = 0; i < kInt4Group / 4; i += 2, codes += kPanel * 4) {
        const QuadVec both =
            hn::BitCast(d, hn::LoadU(hn::RebindToSigned<QuadTag>(),
                                     reinterpret_cast<const int32_t*>(codes)));
        call(quad + i, column, group.Numbers(both));
        call(quad + i + 1, column, group.Numbers(hn::ShiftRight<4>(both)));
      }
    }
  }
}

void UnpackQuadsTarget(const uint8_t* panel, int64_t groups, int8_t* out) {
  const QuadTag d;
  ForEachQuad(panel, groups,
              [&](int64_t quad, int64_t column, QuadVec numbers) {
                int8_t* to = out + (quad * kPanel + column) * 4;
                hn::StoreU(numbers, d, reinterpret_cast<uint32_t*>(to));
              });
}

void UnpackInputsTarget(const uint8_t* panel, int64_t groups, int8_t* out) {
  const QuadTag d;
  const hn::RebindToSigned<QuadTag> words;
  const hn::Rebind<uint8_t, QuadTag> narrow;
  ForEachQuad(
      panel, groups, [&](int64_t quad, int64_t column, QuadVec numbers) {
        uint8_t* to =
            reinterpret_cast<uint8_t*>(out) + quad * 4 * kPanel + column;
        for (int64_t i = 0; i < 4; ++i, to += kPanel) {
          // Highway 1.0.3's TruncateTo permutes words, not bytes, for AVX3_DL.
          const QuadVec byte = hn::And(numbers, hn::Set(d, 255u));
          hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(words, byte)), narrow,
                     to);
          numbers = hn::ShiftRight<8>(numbers);
        }
      });
}

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace txl {

HWY_EXPORT(UnpackQuadsTarget);
HWY_EXPORT(UnpackInputsTarget);

void UnpackInt4Quads(const uint8_t* panel, int64_t groups, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(UnpackQuadsTarget)(panel, groups, out);
}
void UnpackInt4Inputs(const uint8_t* panel, int64_t groups, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(UnpackInputsTarget)(panel, groups, out);
}

namespace {

constexpr int kMostCode = 15;
// Of the numbers of 8 bits; rounding adds half a step at most.
constexpr float kMostNumber = 120;
// Below this an output counts as zeros: its inverse would not be finite.
constexpr float kSmallest = 1e-30f;

// A group's smallest and largest number, zero among them.
struct Range {
  float low = 0;
  float high = 0;

  float width() const { return high - low; }
};

Range RangeOf(const float* x, int64_t count) {
  Range range;
  for (int64_t i = 0; i < count; ++i) {
    range.low = std::min(range.low, x[i]);
    range.high = std::max(range.high, x[i]);
  }
  return range;
}

// The coarsest group takes the largest step, or the largest number the largest
// of 8 bits.
float ScaleOfOutput(const float* x, int64_t inputs) {
  float scale = 0;
  float nothing = 0;
  for (int64_t k = 0; k < inputs; k += kInt4Group) {
    const int64_t count = std::min(kInt4Group, inputs - k);
    const Range range = RangeOf(x + k, count);
    scale = std::max({scale, range.width() / (kMostCode * kMostCode),
                      range.high / kMostNumber, -range.low / kMostNumber});
    for (int64_t i = k; i < k + count; ++i) nothing += x[i] * 0;
  }
  return (scale >= kSmallest ? scale : 0) + nothing;
}

// Where the words of a group's codes lie that belong to an output.
template <typename Byte>
Byte* CodesOf(Byte* group, int64_t output, int64_t eight) {
  return group + kPanel + (eight * kPanel + output) * 4;
}

void PackGroup(const float* x, int64_t count, float scale, int64_t output,
               uint8_t* group) {
  const Range range = RangeOf(x, count);
  const int step = std::clamp(
      static_cast<int>(std::ceil(range.width() / (kMostCode * scale))), 1,
      kMostCode);
  const float inverse = 1 / (static_cast<float>(step) * scale);
  const int zero = std::clamp(
      static_cast<int>(std::lrint(-range.low * inverse)), 0, kMostCode);
  group[output] = static_cast<uint8_t>(step + 16 * zero);
  for (int64_t eight = 0; eight < kInt4Group / 8; ++eight) {
    uint8_t codes[8];
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t k = eight * 8 + i;
      const float number = k < count ? x[k] * inverse : 0;
      codes[i] = static_cast<uint8_t>(std::clamp(
          static_cast<int>(std::lrint(number)) + zero, 0, kMostCode));
    }
    uint8_t* to = CodesOf(group, output, eight);
    for (int i = 0; i < 4; ++i) {
      to[i] = static_cast<uint8_t>(codes[i] | codes[i + 4] << 4);
    }
  }
}

}  // namespace

float PackInt4Output(const float* x, int64_t inputs, int64_t output,
                     uint8_t* panel) {
  const float scale = ScaleOfOutput(x, inputs);
  if (!(scale > 0)) return scale;  // a panel is zeros before it is packed
  for (int64_t k = 0; k < inputs; k += kInt4Group, panel += kInt4GroupBytes) {
    PackGroup(x + k, std::min(kInt4Group, inputs - k), scale, output, panel);
  }
  return scale;
}

void UnpackInt4Output(const uint8_t* panel, int64_t output, int64_t inputs,
                      float* row) {
  for (int64_t k = 0; k < inputs; ++k) {
    const uint8_t* group = panel + k / kInt4Group * kInt4GroupBytes;
    const int step = group[output] % 16, zero = group[output] / 16;
    const uint8_t both = CodesOf(group, output, k % kInt4Group / 8)[k % 4];
    const int code = k % 8 < 4 ? both % 16 : both / 16;
    row[k] = static_cast<float>((code - zero) * step);
  }
}

}  // namespace txl
#endif  // HWY_ONCE
