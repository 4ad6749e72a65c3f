#pragma once

// Number formats that weights and stored rows have on a device. Arithmetic is
// in float32; these are how numbers lie in memory. Plain C++: the same bits on
// the device and on the host.

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "model/base/anywhere.h"

namespace txl::cuda {

// The upper half of a float32, rounded to nearest, ties to even.
struct Bf16 {
  uint16_t bits = 0;
};
// IEEE 754 binary16, rounded to nearest, ties to even; too large becomes inf.
struct F16 {
  uint16_t bits = 0;
};

TXL_ANYWHERE float BitsToFloat(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}
TXL_ANYWHERE uint32_t FloatToBits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

TXL_ANYWHERE float Widen(float x) { return x; }
TXL_ANYWHERE float Widen(Bf16 x) {
  return BitsToFloat(static_cast<uint32_t>(x.bits) << 16);
}
TXL_ANYWHERE float Widen(F16 x) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(x.bits));
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // inf, NaN
    return BitsToFloat(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x400u) {  // subnormal: a multiple of 2^-24
    const float x24 = static_cast<float>(magnitude) * 0x1p-24f;
    return sign == 0 ? x24 : -x24;
  }
  return BitsToFloat(sign | ((magnitude << 13) + 0x38000000u));
#endif
}

template <typename T>
TXL_ANYWHERE T Narrow(float x);

template <>
TXL_ANYWHERE float Narrow<float>(float x) {
  return x;
}
template <>
TXL_ANYWHERE Bf16 Narrow<Bf16>(float x) {
#if defined(__CUDA_ARCH__)
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#else
  const uint32_t bits = FloatToBits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};  // NaN
  const uint32_t odd = (bits >> 16) & 1u;
  return {static_cast<uint16_t>((bits + 0x7fffu + odd) >> 16)};
#endif
}
template <>
TXL_ANYWHERE F16 Narrow<F16>(float x) {
#if defined(__CUDA_ARCH__)
  return {__half_as_ushort(__float2half_rn(x))};
#else
  const uint32_t bits = FloatToBits(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {0x7fff};  // NaN
  if (magnitude >= 0x477ff000u) {                // rounds to 2^16 or more
    return {static_cast<uint16_t>(sign | 0x7c00u)};
  }
  if (magnitude < 0x38800000u) {  // below 2^-14: multiples of 2^-24
    // Adding 2^-1 leaves multiples of 2^-24, rounded by the addition.
    const float shifted = BitsToFloat(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (FloatToBits(shifted) - 0x3f000000u))};
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + odd;
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
#endif
}

}  // namespace txl::cuda
