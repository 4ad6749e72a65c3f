#pragma once

// Products of small matrices by a warp on tensor cores: fragments as the PTX
// ISA lays them out for mma.m16n8k16. With g = lane / 4 and t = lane % 4:
//
//   a [16, 16]: a[0] = rows g,     columns 2t, 2t+1    a[1] = rows g + 8
//               a[2] = rows g,     columns 2t+8, 2t+9  a[3] = rows g + 8
//   b [16, 8]:  b[0] = rows 2t, 2t+1 of column g       b[1] = rows 2t+8, 2t+9
//   c [16, 8]:  c[0..1] = row g, columns 2t, 2t+1      c[2..3] = row g + 8
//
// Two numbers of 16 bits share a register, the first one in the lower half.

#include "model/cuda/device/kernel.h"

namespace txl::cuda {

// Both rounded as Narrow<T> does; one instruction on the device.
template <typename T>
TXL_DEVICE uint32_t PackPair(float low, float high);
template <>
TXL_DEVICE uint32_t PackPair<Bf16>(float low, float high) {
#if defined(__CUDA_ARCH__)
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof(bits));
  return bits;
#else
  return Narrow<Bf16>(low).bits | uint32_t{Narrow<Bf16>(high).bits} << 16;
#endif
}
template <>
TXL_DEVICE uint32_t PackPair<F16>(float low, float high) {
#if defined(__CUDA_ARCH__)
  const __half2 pair = __floats2half2_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof(bits));
  return bits;
#else
  return Narrow<F16>(low).bits | uint32_t{Narrow<F16>(high).bits} << 16;
#endif
}

#if defined(__CUDACC__)

// c += a b. T: Bf16 or F16. Products are exact, sums float32, in an order and
// with a rounding that are the device's own: the emulator adds one after the
// other, tensor cores add several at once and cut off bits.
template <typename T>
TXL_DEVICE void MultiplyAdd(float (&c)[4], const uint32_t (&a)[4],
                            const uint32_t (&b)[2]);
template <>
TXL_DEVICE void MultiplyAdd<Bf16>(float (&c)[4], const uint32_t (&a)[4],
                                  const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
TXL_DEVICE void MultiplyAdd<F16>(float (&c)[4], const uint32_t (&a)[4],
                                 const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8 x 8 matrices of 16-bit numbers from shared memory. Lane l gives the
// address of row l % 8 of matrix l / 8, 16 bytes, aligned. out[i] of a lane is
// row g of matrix i, columns 2t and 2t + 1.
TXL_DEVICE void LoadMatrices(uint32_t (&out)[4], const void* row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}
// LoadMatrices turned: out[i] is column g of matrix i, rows 2t and 2t + 1.
TXL_DEVICE void LoadMatricesTurned(uint32_t (&out)[4], const void* row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
      : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
      : "r"(address)
      : "memory");
}

#else

template <typename T>
void MultiplyAdd(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
extern template void MultiplyAdd<Bf16>(float (&)[4], const uint32_t (&)[4],
                                       const uint32_t (&)[2]);
extern template void MultiplyAdd<F16>(float (&)[4], const uint32_t (&)[4],
                                      const uint32_t (&)[2]);
void LoadMatrices(uint32_t (&out)[4], const void* row);
void LoadMatricesTurned(uint32_t (&out)[4], const void* row);

#endif

}  // namespace txl::cuda
