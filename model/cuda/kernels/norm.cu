#include <algorithm>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/linear_epilogue.h"
#include "model/cuda/kernels/norm.h"

namespace txl::cuda {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kEach = 4;  // neighbours that a thread takes at once
using Group = Neighbours<float, kEach>;

// Over the block, the same bits in every thread. `sums`: shared memory, one
// number per warp, used by no other call.
TXL_DEVICE float BlockSum(float x, float* sums) {
  x = WarpSum(x);
  if (Lane() == 0) sums[WarpOfBlock()] = x;
  BlockBarrier();
  float sum = 0;
  for (int warp = 0; warp < Threads() / kWarp; ++warp) sum += sums[warp];
  return sum;
}

// x of row r, columns k..k+3.
template <typename T>
TXL_DEVICE Group InputOf(const NormArgs<T>& args, int r, int k) {
  const int64_t at = r * args.stride + k;
  if (args.partial == nullptr) return LoadNeighbours<kEach>(args.wide_in + at);
  Group x = {};
  for (int split = 0; split < args.splits; ++split) {
    const int64_t before = split * args.rows * args.stride;
    const auto part = LoadNeighbours<kEach>(args.partial + before + at);
    for (int i = 0; i < kEach; ++i) x.v[i] += part.v[i];
  }
  if (args.bias != nullptr) {
    const auto bias = LoadNeighbours<kEach>(args.bias + k);
    for (int i = 0; i < kEach; ++i) x.v[i] += bias.v[i];
  }
  for (int i = 0; i < kEach; ++i) x.v[i] = Activate(x.v[i], args.activation);
  if (args.residual != nullptr) {
    const auto residual = LoadNeighbours<kEach>(args.residual + at);
    for (int i = 0; i < kEach; ++i) x.v[i] += residual.v[i];
  }
  return x;
}

struct Moments {
  float mean;
  float scale;  // 1 / sqrt(variance + eps)
};

// Of the row; every thread gives the columns that it wrote itself.
TXL_DEVICE Moments MomentsOf(const float* row, int width, float eps,
                             float* sums) {
  float sum = 0;
  for (int k = Thread() * kEach; k < width; k += Threads() * kEach) {
    const auto x = LoadNeighbours<kEach>(row + k);
    for (int i = 0; i < kEach; ++i) sum += k + i < width ? x.v[i] : 0;
  }
  const float mean = BlockSum(sum, sums) / static_cast<float>(width);
  float squares = 0;
  for (int k = Thread() * kEach; k < width; k += Threads() * kEach) {
    const auto x = LoadNeighbours<kEach>(row + k);
    for (int i = 0; i < kEach; ++i) {
      const float d = k + i < width ? x.v[i] - mean : 0;
      squares += d * d;
    }
  }
  const float variance =
      BlockSum(squares, sums + kMaxThreads / kWarp) / static_cast<float>(width);
  return {mean, 1.0f / sqrtf(variance + eps)};
}

// One block per row, which it keeps in shared memory.
template <typename T>
TXL_KERNEL_OF(kMaxThreads)
NormRow(NormArgs<T> args) {
  AwaitEarlierKernels();
  const int r = BlockX();
  float* sums = reinterpret_cast<float*>(SharedMemory());
  float* row = sums + 2 * kMaxThreads / kWarp;
  for (int k = Thread() * kEach; k < args.stride; k += Threads() * kEach) {
    Group x = InputOf(args, r, k);
    for (int i = 0; i < kEach; ++i) x.v[i] = k + i < args.width ? x.v[i] : 0;
    StoreNeighbours<kEach>(row + k, x);
    if (args.sum != nullptr) {
      StoreNeighbours<kEach>(args.sum + r * args.stride + k, x);
    }
  }
  if (args.wide == nullptr && args.narrow == nullptr) return;
  Moments moments = {0, 1};
  if (args.gain != nullptr) {
    moments = MomentsOf(row, args.width, args.eps, sums);
  }
  for (int k = Thread() * kEach; k < args.stride; k += Threads() * kEach) {
    Group y = LoadNeighbours<kEach>(row + k);
    if (args.gain != nullptr) {
      const auto gain = LoadNeighbours<kEach>(args.gain + k);
      const auto shift = LoadNeighbours<kEach>(args.shift + k);
      for (int i = 0; i < kEach; ++i) {
        const float z =
            (y.v[i] - moments.mean) * moments.scale * gain.v[i] + shift.v[i];
        y.v[i] = k + i < args.width ? z : 0;
      }
    }
    const int64_t at = r * args.stride + k;
    if (args.wide != nullptr) StoreNeighbours<kEach>(args.wide + at, y);
    if (args.narrow != nullptr) StoreRounded(args.narrow + at, y);
  }
}

}  // namespace

template <typename T>
void LaunchNorm(Stream& stream, const NormArgs<T>& args) {
  const int64_t warps = (args.stride / kEach + kWarp - 1) / kWarp;
  const int threads =
      static_cast<int>(std::min<int64_t>(warps * kWarp, kMaxThreads));
  const size_t shared =
      (2 * kMaxThreads / kWarp + static_cast<size_t>(args.stride)) *
      sizeof(float);
  Launch(stream, {{args.rows}, threads, shared}, NormRow<T>, args);
}

template void LaunchNorm(Stream&, const NormArgs<float>&);
template void LaunchNorm(Stream&, const NormArgs<Bf16>&);
template void LaunchNorm(Stream&, const NormArgs<F16>&);

}  // namespace txl::cuda
