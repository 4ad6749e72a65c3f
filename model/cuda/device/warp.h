#pragma once

// What a warp or a block computes together. Every lane calls each function;
// orders of additions are fixed, so that the same numbers give the same bits.

#include "model/cuda/device/kernel.h"

// Before a loop whose body is long: once is enough.
#if defined(__CUDACC__)
#define TXL_NO_UNROLL _Pragma("unroll 1")
#else
#define TXL_NO_UNROLL
#endif

namespace txl::cuda {

#if defined(__CUDACC__)

// ShuffleXor for any type whose size is a multiple of 4 bytes.
template <typename T>
TXL_DEVICE T ExchangeXor(T value, int mask) {
  uint32_t words[sizeof(T) / 4];
  memcpy(words, &value, sizeof(T));
  TXL_UNROLL
  for (uint32_t& word : words) word = ShuffleXor(word, mask);
  memcpy(&value, words, sizeof(T));
  return value;
}

// All 32 values under `op`, which is commutative, lanes l and l + 16 first,
// then l and l + 8, ...; the same bits in every lane. sizeof(T) <= 64.
template <typename T, typename Op>
TXL_DEVICE T WarpReduce(T value, Op op) {
  TXL_UNROLL
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    value = op(value, ExchangeXor(value, mask));
  }
  return value;
}

// The sum of lanes 0..l in lane l.
template <typename T>
TXL_DEVICE T WarpRunningSum(T value) {
  TXL_UNROLL
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, value, distance);
    if (Lane() >= distance) value = before + value;
  }
  return value;
}

#else

template <typename T, typename Op>
T WarpReduce(T value, Op op) {
  T all[kWarp];
  const auto* given = emulator::Exchange(&value, sizeof(T));
  for (int l = 0; l < kWarp; ++l) std::memcpy(&all[l], given[l], sizeof(T));
  for (int half = kWarp / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) all[l] = op(all[l], all[l + half]);
  }
  return all[0];
}

template <typename T>
T WarpRunningSum(T value) {
  T all[kWarp];
  const auto* given = emulator::Exchange(&value, sizeof(T));
  for (int l = 0; l < kWarp; ++l) std::memcpy(&all[l], given[l], sizeof(T));
  for (int distance = 1; distance < kWarp; distance *= 2) {
    for (int l = kWarp - 1; l >= distance; --l) {
      all[l] = all[l - distance] + all[l];
    }
  }
  return all[Lane()];
}

#endif

struct Plus {
  template <typename T>
  TXL_DEVICE T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

// Shared memory for one sum over the block at a time.
struct BlockScratch {
  alignas(16) unsigned char of_warp[kWarp][64];
};

// WarpReduce, then over the warps in order; the same bits in every
// thread. Has barriers before and after shared memory is written.
template <typename T, typename Op>
TXL_DEVICE T BlockReduce(T value, Op op, BlockScratch& scratch) {
  static_assert(sizeof(T) <= sizeof(scratch.of_warp[0]));
  T* const of_warp = reinterpret_cast<T*>(scratch.of_warp);
  value = WarpReduce(value, op);
  BlockBarrier();
  if (Lane() == 0) of_warp[WarpOfBlock()] = value;
  BlockBarrier();
  value = of_warp[0];
  for (int w = 1; w < Threads() / kWarp; ++w) value = op(value, of_warp[w]);
  return value;
}

struct PlaceInSum {
  int before = 0;  // of the threads before this one
  int total = 0;   // of all threads
};

TXL_DEVICE PlaceInSum BlockRunningSum(int value, BlockScratch& scratch) {
  int* const of_warp = reinterpret_cast<int*>(scratch.of_warp);
  const int running = WarpRunningSum(value);
  BlockBarrier();
  if (Lane() == kWarp - 1) of_warp[WarpOfBlock()] = running;
  BlockBarrier();
  PlaceInSum place;
  for (int w = 0; w < Threads() / kWarp; ++w) {
    if (w == WarpOfBlock()) place.before = place.total + running - value;
    place.total += of_warp[w];
  }
  return place;
}

}  // namespace txl::cuda
