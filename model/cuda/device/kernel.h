#pragma once

// What kernels are written with. A kernel is a function
//
//   TXL_KERNEL Name(arguments by value) { ... }
//
// in a .cu file that is compiled twice: by nvcc for the device, and by the C++
// compiler for the CPU (tests/model/cuda/emulator/emulated_block.h), where
// tests run it. So kernels use the functions below and nothing of CUDA itself,
// one-dimensional blocks of whole warps, and dynamic shared memory only.
// docs/cuda.md lists what a kernel is reviewed against.

#include "model/cuda/device/launch_shape.h"
#include "model/cuda/device/numbers.h"

#if defined(__CUDACC__)

#define TXL_KERNEL static __global__ void
// The most threads that a kernel is launched with, so that the compiler knows
// how many registers each may have. (The emulator does not know.)
#define TXL_KERNEL_OF(threads) \
  static __global__ void __launch_bounds__(threads, 1)
#define TXL_DEVICE __device__ __forceinline__
// Before a loop of few, fixed steps whose arrays are to stay in registers.
#define TXL_UNROLL _Pragma("unroll")
// Before one that takes too many registers if all its steps are unrolled.
#define TXL_UNROLL_BY_4 _Pragma("unroll 4")

#else

#include <emulator/emulated_block.h>

#include <cmath>

#define TXL_KERNEL static void
#define TXL_KERNEL_OF(threads) static void
#define TXL_DEVICE inline
#define TXL_UNROLL
#define TXL_UNROLL_BY_4

#endif

namespace txl::cuda {

#if defined(__CUDACC__)

TXL_DEVICE int Thread() { return static_cast<int>(threadIdx.x); }
TXL_DEVICE int Threads() { return static_cast<int>(blockDim.x); }
TXL_DEVICE int BlockX() { return static_cast<int>(blockIdx.x); }
TXL_DEVICE int BlockY() { return static_cast<int>(blockIdx.y); }
TXL_DEVICE int BlockZ() { return static_cast<int>(blockIdx.z); }
TXL_DEVICE int GridX() { return static_cast<int>(gridDim.x); }

// The block's dynamic shared memory, aligned to 128 bytes.
TXL_DEVICE unsigned char* SharedMemory() {
  extern __shared__ __align__(128) unsigned char txl_shared_memory[];
  return txl_shared_memory;
}

// All threads of the block, or of the warp, that have not ended; memory that
// they wrote before is visible to each other after.
TXL_DEVICE void BlockBarrier() { __syncthreads(); }
TXL_DEVICE void WarpBarrier() { __syncwarp(); }

// `value` of lane (lane ^ mask), of lane `lane`, of all threads of the warp
// together. Every lane of the warp calls them, none has ended. They are no
// barriers: memory written before may not be visible after.
template <typename T>
TXL_DEVICE T ShuffleXor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <typename T>
TXL_DEVICE T ShuffleFrom(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
TXL_DEVICE bool AnyInWarp(bool value) {
  return __any_sync(0xffffffffu, value) != 0;
}
// The largest of the warp's numbers, in every lane. NaN counts as nothing:
// where all are NaN it is -inf.
TXL_DEVICE float WarpMax(float x) {
  // Floats are ordered like integers, but the negative ones the wrong way; the
  // device finds an integer's maximum in one instruction.
  const auto ordered = [](int bits) {
    return bits < 0 ? bits ^ 0x7fffffff : bits;
  };
  const float number = x == x ? x : __int_as_float(0xff800000);  // or -inf
  const int most =
      __reduce_max_sync(0xffffffffu, ordered(__float_as_int(number)));
  return __int_as_float(ordered(most));
}

// Copies 16 bytes of global memory into shared memory, both aligned to 16,
// while the kernel goes on; zeros where `valid` is false (then `from` is not
// read, but must still be a pointer into the same array). A thread's copies
// since its last CloseCopies form a group; FinishCopies<N> waits for all of
// its groups but the newest N. Other threads see them after a barrier. All
// threads that read the old content of `to` must have passed a barrier before
// the copy is requested. A thread waits for all of its copies before it ends.
TXL_DEVICE void CopyLater16(void* to, const void* from, bool valid) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address),
               "l"(from), "r"(bytes)
               : "memory");
}
TXL_DEVICE void CloseCopies() { asm volatile("cp.async.commit_group;\n"); }
template <int kLeft>
TXL_DEVICE void FinishCopies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

// Adds to a counter in global memory; returns what it was.
TXL_DEVICE int AtomicAdd(int* counter, int value) {
  return atomicAdd(counter, value);
}
// Writes before it are seen by other blocks before writes after it.
TXL_DEVICE void GlobalFence() { __threadfence(); }

// In a stream that overlaps kernels (runtime.h), a kernel's blocks may begin
// while kernels before it still run. AwaitEarlierKernels waits until those have
// ended and what they wrote is visible. Every thread of every kernel calls it
// (a kernel that ended without having waited would let the next one begin too
// early); before that it reads only what no earlier kernel of its stream or
// graph may write, such as weights, and writes shared memory alone.
// LetNextBegin says that the next kernel may begin as soon as there is room,
// once all blocks of this one have called it; AwaitEarlierKernels calls it too.
TXL_DEVICE void LetNextBegin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n");
#endif
}
TXL_DEVICE void AwaitEarlierKernels() {
#if __CUDA_ARCH__ >= 900
  LetNextBegin();
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}

// a * b, rounded before anything is added to it: a formula that is to have the
// same bits wherever it stands, and on the host, has no multiply-adds.
TXL_DEVICE double RoundedProduct(double a, double b) { return __dmul_rn(a, b); }

#else

inline int Thread() { return emulator::CurrentPlace().thread; }
inline int Threads() { return emulator::CurrentPlace().threads; }
inline int BlockX() { return emulator::CurrentPlace().block.x; }
inline int BlockY() { return emulator::CurrentPlace().block.y; }
inline int BlockZ() { return emulator::CurrentPlace().block.z; }
inline int GridX() { return emulator::CurrentPlace().grid.x; }

inline unsigned char* SharedMemory() { return emulator::SharedMemory(); }
inline void BlockBarrier() { emulator::BlockBarrier(); }
inline void WarpBarrier() { emulator::WarpBarrier(); }

template <typename T>
T ShuffleFrom(T value, int lane) {
  T received;
  std::memcpy(&received, emulator::Exchange(&value, sizeof(T))[lane % kWarp],
              sizeof(T));
  return received;
}
template <typename T>
T ShuffleXor(T value, int mask) {
  return ShuffleFrom(value, (Thread() % kWarp) ^ mask);
}
inline bool AnyInWarp(bool value) {
  const auto* all = emulator::Exchange(&value, sizeof(value));
  for (int lane = 0; lane < kWarp; ++lane) {
    if (all[lane][0] != 0) return true;
  }
  return false;
}

inline float WarpMax(float x) {
  const auto* all = emulator::Exchange(&x, sizeof(x));
  for (int lane = 0; lane < kWarp; ++lane) {
    float other;
    std::memcpy(&other, all[lane], sizeof(other));
    x = std::fmax(x, other);
  }
  return x;
}

inline void CopyLater16(void* to, const void* from, bool valid) {
  emulator::CopyLater(to, from, 16, valid);
}
inline void CloseCopies() { emulator::CloseCopies(); }
template <int kLeft>
void FinishCopies() {
  emulator::FinishCopies(kLeft);
}

inline int AtomicAdd(int* counter, int value) {
  const int before = *counter;
  *counter += value;
  return before;
}
inline void GlobalFence() {}

inline void LetNextBegin() {}
inline void AwaitEarlierKernels() { emulator::AwaitEarlierKernels(); }

inline double RoundedProduct(double a, double b) { return a * b; }

#endif

TXL_DEVICE int Lane() { return Thread() % kWarp; }
TXL_DEVICE int WarpOfBlock() { return Thread() / kWarp; }

// Over the warp, the same bits in every lane.
TXL_DEVICE float WarpSum(float x) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) x += ShuffleXor(x, mask);
  return x;
}

}  // namespace txl::cuda
