#pragma once

// Kernels that use what model/cuda/device offers, one thing each, for tests of
// it. All pointers are to memory of the device.

#include <cstdint>

#include "model/cuda/device/launch_shape.h"
#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// to[i] = Narrow<T>(from[i]), and back.
template <typename T>
void LaunchNarrow(Stream& stream, const float* from, T* to, int64_t size);
template <typename T>
void LaunchWiden(Stream& stream, const T* from, float* to, int64_t size);

// to[i] = PackPair<T>(from[2 i], from[2 i + 1]).
template <typename T>
void LaunchPackPairs(Stream& stream, const float* from, uint32_t* to,
                     int64_t pairs);

// to[i] = from[i] + 1 by a grid of the given shape, whatever it is.
void LaunchAddOne(Stream& stream, const LaunchShape& shape, const int* from,
                  int* to, int64_t size);

// Every thread writes where it is: to[block * threads + thread] = {thread,
// threads, block x, y, z, blocks along x}.
struct WrittenPlace {
  int thread, threads, x, y, z, grid_x;
};
void LaunchPlaces(Stream& stream, const LaunchShape& shape, WrittenPlace* to);

// Blocks of 128: each one's numbers in reverse order, through shared memory and
// a barrier.
inline constexpr int kReversed = 128;
void LaunchReverse(Stream& stream, const float* from, float* to, int blocks);

// One warp. Of its 32 numbers: sum, maximum, of lane ^ 5, of lane 7, whether
// any is negative; five times 32.
void LaunchWarpFunctions(Stream& stream, const float* from, float* to);

// Sums of columns of x [rows, kSummedColumns], by one warp that copies two rows
// ahead into a ring of three in shared memory. Lanes read what others copied.
inline constexpr int kSummedColumns = 128;
void LaunchColumnSums(Stream& stream, const float* x, int rows, float* sums);

// The sum of all numbers, added up by the block that ends last. `counter` is 0
// before and after.
void LaunchSumOfBlocks(Stream& stream, const int* from, int blocks,
                       int* partial, int* counter, int* sum);

// c [16, 8] += a [16, 16] b, of b either b [16, 8] or its transpose [8, 16].
struct SmallProduct {
  const void* a;
  const void* b;
  bool b_transposed;
  float* c;
};
template <typename T>
void LaunchSmallProduct(Stream& stream, const SmallProduct& product);

}  // namespace txl::cuda
