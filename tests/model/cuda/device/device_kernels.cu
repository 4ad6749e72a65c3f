#include "model/cuda/device/launch.h"
#include "model/cuda/device/matrix.h"
#include "tests/model/cuda/device/device_kernels.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
TXL_KERNEL NarrowAll(const float* from, T* to, int64_t size) {
  AwaitEarlierKernels();
  const int64_t i = int64_t{BlockX()} * Threads() + Thread();
  if (i < size) to[i] = Narrow<T>(from[i]);
}

template <typename T>
TXL_KERNEL WidenAll(const T* from, float* to, int64_t size) {
  AwaitEarlierKernels();
  const int64_t i = int64_t{BlockX()} * Threads() + Thread();
  if (i < size) to[i] = Widen(from[i]);
}

template <typename T>
TXL_KERNEL PackPairs(const float* from, uint32_t* to, int64_t pairs) {
  AwaitEarlierKernels();
  const int64_t i = int64_t{BlockX()} * Threads() + Thread();
  if (i < pairs) to[i] = PackPair<T>(from[2 * i], from[2 * i + 1]);
}

TXL_KERNEL AddOne(const int* from, int* to, int64_t size) {
  AwaitEarlierKernels();
  const int64_t step = int64_t{GridX()} * Threads();
  for (int64_t i = int64_t{BlockX()} * Threads() + Thread(); i < size;
       i += step) {
    to[i] = from[i] + 1;
  }
}

TXL_KERNEL Places(int grid_y, WrittenPlace* to) {
  AwaitEarlierKernels();
  const int block = (BlockZ() * grid_y + BlockY()) * GridX() + BlockX();
  to[block * Threads() + Thread()] = {Thread(), Threads(), BlockX(),
                                      BlockY(), BlockZ(),  GridX()};
}

TXL_KERNEL_OF(kReversed) Reverse(const float* from, float* to) {
  AwaitEarlierKernels();
  float* shared = reinterpret_cast<float*>(SharedMemory());
  const int64_t begin = int64_t{BlockX()} * kReversed;
  shared[Thread()] = from[begin + Thread()];
  BlockBarrier();
  to[begin + Thread()] = shared[kReversed - 1 - Thread()];
}

TXL_KERNEL WarpFunctions(const float* from, float* to) {
  AwaitEarlierKernels();
  const float x = from[Lane()];
  const float results[5] = {WarpSum(x), WarpMax(x), ShuffleXor(x, 5),
                            ShuffleFrom(x, 7), AnyInWarp(x < 0) ? 1.f : 0.f};
  for (int i = 0; i < 5; ++i) to[i * kWarp + Lane()] = results[i];
}

constexpr int kStages = 3;

// Lane l copies columns 4 l to 4 l + 3, and adds up those of lane 31 - l.
TXL_KERNEL_OF(kWarp) ColumnSums(const float* x, int rows, float* sums) {
  AwaitEarlierKernels();
  float* ring = reinterpret_cast<float*>(SharedMemory());
  const auto copy = [&](int row) {
    const bool valid = row < rows;
    CopyLater16(ring + row % kStages * kSummedColumns + 4 * Lane(),
                valid ? x + int64_t{row} * kSummedColumns + 4 * Lane() : x,
                valid);
    CloseCopies();
  };
  for (int row = 0; row < kStages - 1; ++row) copy(row);
  const int column = 4 * (kWarp - 1 - Lane());
  float mine[4] = {};
  for (int row = 0; row < rows; ++row) {
    FinishCopies<kStages - 2>();
    WarpBarrier();
    copy(row + kStages - 1);
    const float* stored = ring + row % kStages * kSummedColumns + column;
    for (int i = 0; i < 4; ++i) mine[i] += stored[i];
  }
  FinishCopies<0>();
  for (int i = 0; i < 4; ++i) sums[column + i] = mine[i];
}

TXL_KERNEL SumOfBlocks(const int* from, int* partial, int* counter, int* sum) {
  AwaitEarlierKernels();
  int* shared = reinterpret_cast<int*>(SharedMemory());
  if (Thread() == 0) {
    int mine = 0;
    for (int i = 0; i < Threads(); ++i) mine += from[BlockX() * Threads() + i];
    partial[BlockX()] = mine;
    GlobalFence();
    shared[0] = AtomicAdd(counter, 1);
  }
  BlockBarrier();
  if (shared[0] != GridX() - 1) return;
  GlobalFence();
  if (Thread() != 0) return;
  int all = 0;
  for (int i = 0; i < GridX(); ++i) all += partial[i];
  *sum = all;
  *counter = 0;
}

// a lies in 512 bytes of shared memory, b behind it.
template <typename T>
TXL_KERNEL_OF(kWarp)
SmallProductOfWarp(SmallProduct product) {
  AwaitEarlierKernels();
  T* a = reinterpret_cast<T*>(SharedMemory());
  T* b = a + 16 * 16;
  for (int i = Lane(); i < 16 * 16; i += kWarp) {
    a[i] = static_cast<const T*>(product.a)[i];
  }
  for (int i = Lane(); i < 16 * 8; i += kWarp) {
    b[i] = static_cast<const T*>(product.b)[i];
  }
  WarpBarrier();
  const int row = Lane() % 16;
  uint32_t a_fragment[4];
  LoadMatrices(a_fragment, a + row * 16 + Lane() / 16 * 8);
  // Two matrices are enough for b; the other two are loaded again.
  uint32_t loaded[4];
  if (product.b_transposed) {
    LoadMatrices(loaded, b + row % 8 * 16 + row / 8 * 8);
  } else {
    LoadMatricesTurned(loaded, b + row * 8);
  }
  const uint32_t b_fragment[2] = {loaded[0], loaded[1]};
  const int at = Lane() / 4 * 8 + Lane() % 4 * 2;
  float c[4] = {product.c[at], product.c[at + 1], product.c[at + 64],
                product.c[at + 65]};
  MultiplyAdd<T>(c, a_fragment, b_fragment);
  for (int i = 0; i < 4; ++i) product.c[at + i % 2 + i / 2 * 64] = c[i];
}

LaunchShape OnePerThread(int64_t size) {
  return {{static_cast<int>((size + kThreads - 1) / kThreads)}, kThreads};
}

}  // namespace

template <typename T>
void LaunchNarrow(Stream& stream, const float* from, T* to, int64_t size) {
  Launch(stream, OnePerThread(size), NarrowAll<T>, from, to, size);
}
template void LaunchNarrow(Stream&, const float*, Bf16*, int64_t);
template void LaunchNarrow(Stream&, const float*, F16*, int64_t);

template <typename T>
void LaunchWiden(Stream& stream, const T* from, float* to, int64_t size) {
  Launch(stream, OnePerThread(size), WidenAll<T>, from, to, size);
}
template void LaunchWiden(Stream&, const Bf16*, float*, int64_t);
template void LaunchWiden(Stream&, const F16*, float*, int64_t);

template <typename T>
void LaunchPackPairs(Stream& stream, const float* from, uint32_t* to,
                     int64_t pairs) {
  Launch(stream, OnePerThread(pairs), PackPairs<T>, from, to, pairs);
}
template void LaunchPackPairs<Bf16>(Stream&, const float*, uint32_t*, int64_t);
template void LaunchPackPairs<F16>(Stream&, const float*, uint32_t*, int64_t);

void LaunchAddOne(Stream& stream, const LaunchShape& shape, const int* from,
                  int* to, int64_t size) {
  Launch(stream, shape, AddOne, from, to, size);
}

void LaunchPlaces(Stream& stream, const LaunchShape& shape, WrittenPlace* to) {
  Launch(stream, shape, Places, shape.grid.y, to);
}

void LaunchReverse(Stream& stream, const float* from, float* to, int blocks) {
  Launch(stream, {{blocks}, kReversed, kReversed * sizeof(float)}, Reverse,
         from, to);
}

void LaunchWarpFunctions(Stream& stream, const float* from, float* to) {
  Launch(stream, {}, WarpFunctions, from, to);
}

void LaunchColumnSums(Stream& stream, const float* x, int rows, float* sums) {
  Launch(stream, {{}, kWarp, kStages * kSummedColumns * sizeof(float)},
         ColumnSums, x, rows, sums);
}

void LaunchSumOfBlocks(Stream& stream, const int* from, int blocks,
                       int* partial, int* counter, int* sum) {
  Launch(stream, {{blocks}, kThreads, sizeof(int)}, SumOfBlocks, from, partial,
         counter, sum);
}

template <typename T>
void LaunchSmallProduct(Stream& stream, const SmallProduct& product) {
  Launch(stream, {{}, kWarp, (16 * 16 + 16 * 8) * sizeof(T)},
         SmallProductOfWarp<T>, product);
}
template void LaunchSmallProduct<Bf16>(Stream&, const SmallProduct&);
template void LaunchSmallProduct<F16>(Stream&, const SmallProduct&);

}  // namespace txl::cuda
