// Vectors of quads (integer_operands.h), for the kernels that multiply them. Of
// an instruction set: included once for each, behind foreach_target.h, so it
// has Highway's guard for that.

#if defined(TXL_MODEL_CPU_INTEGER_QUADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TXL_MODEL_CPU_INTEGER_QUADS_INL_H_
#undef TXL_MODEL_CPU_INTEGER_QUADS_INL_H_
#else
#define TXL_MODEL_CPU_INTEGER_QUADS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "model/cpu/panel_product.h"

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a column group is whole vectors.
using FloatTag = hn::CappedTag<float, kColumnGroup>;
using FloatVec = hn::Vec<FloatTag>;
using WordTag = hn::RebindToSigned<FloatTag>;
using WordVec = hn::Vec<WordTag>;
using UnsignedTag = hn::RebindToUnsigned<FloatTag>;

inline int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

// sum + the products of the four bytes of every lane; u unsigned, s signed.
HWY_INLINE WordVec AddQuads(WordVec sum, WordVec u, WordVec s) {
#if HWY_TARGET == HWY_AVX3_DL
  // GCC 12 keeps a block's sums in memory with the intrinsic: half as fast.
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(u.raw), "v"(s.raw));
  return sum;
#elif HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const WordTag d;
  const hn::Repartition<int16_t, WordTag> halves;
  const hn::Repartition<uint16_t, WordTag> unsigned_halves;
  const auto wide = hn::BitCast(unsigned_halves, u);
  const auto even_u = hn::And(wide, hn::Set(unsigned_halves, uint16_t{0xff}));
  const auto even_s =
      hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(halves, s)));
  // On x86 neighbours are added, all into the first sum.
  WordVec second = hn::Zero(d);
  sum = hn::ReorderWidenMulAccumulate(d, hn::BitCast(halves, even_u), even_s,
                                      sum, second);
  return hn::ReorderWidenMulAccumulate(
      d, hn::BitCast(halves, hn::ShiftRight<8>(wide)),
      hn::ShiftRight<8>(hn::BitCast(halves, s)), sum, second);
#else
  const WordTag d;
  const UnsignedTag bits;
  const auto last = hn::Set(bits, 0xffu);
  const auto add = [&](auto u_part, WordVec s_part) {
    const WordVec factor = hn::BitCast(d, hn::And(u_part, last));
    sum = hn::Add(sum, hn::Mul(factor, hn::ShiftRight<24>(s_part)));
  };
  const auto wide = hn::BitCast(bits, u);
  add(wide, hn::ShiftLeft<24>(s));
  add(hn::ShiftRight<8>(wide), hn::ShiftLeft<16>(s));
  add(hn::ShiftRight<16>(wide), hn::ShiftLeft<8>(s));
  add(hn::ShiftRight<24>(wide), s);
  return sum;
#endif
}

inline WordVec LoadWords(const void* p) {
  return hn::LoadU(WordTag(), static_cast<const int32_t*>(p));
}

inline WordVec RepeatQuad(const void* p) {
  int32_t word;
  std::memcpy(&word, p, sizeof(word));
  return hn::Set(WordTag(), word);
}

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#endif  // the guard
