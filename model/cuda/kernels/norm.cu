#include <algorithm>

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/linear_epilogue.h"
#include "model/cuda/kernels/norm.h"

namespace txl::cuda {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kEach = 4;  // neighbours that a thread takes at once

// What a block works with; rows are of `stride` numbers, and a thread reads of
// shared ones what it wrote itself.
struct BlockRows {
  float* sums;  // shared; of the warps, twice
  float* row;   // shared
  const float* bias;
  const float* gain;
  const float* shift;
};
constexpr int kWeightRows = 3;
constexpr int kSharedSums = 2 * kMaxThreads / kWarp;
// Wider rows leave weights where they are; a block of an A100 has 163 KiB.
constexpr size_t kMostShared = 96 << 10;

// Begins to copy a row of weights to `to`, which it returns; nothing where
// there is none.
TXL_DEVICE const float* CopiedRow(float* to, const float* from,
                                  int64_t stride) {
  if (from == nullptr) return to;
  for (int k = Thread() * kEach; k < stride; k += Threads() * kEach) {
    CopyLater16(to + k, from + k, true);
  }
  return to;
}

template <bool kSharesWeights, typename T>
TXL_DEVICE BlockRows BlockRowsOf(const NormArgs<T>& args) {
  BlockRows rows = {nullptr, nullptr, args.bias, args.gain, args.shift};
  rows.sums = reinterpret_cast<float*>(SharedMemory());
  rows.row = rows.sums + kSharedSums;
  if constexpr (!kSharesWeights) return rows;
  float* const copies = rows.row + args.stride;
  rows.bias = CopiedRow(copies, args.bias, args.stride);
  rows.gain = CopiedRow(copies + args.stride, args.gain, args.stride);
  rows.shift = CopiedRow(copies + 2 * args.stride, args.shift, args.stride);
  return rows;
}

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
TXL_DEVICE Four<float> InputOf(const NormArgs<T>& args, const float* bias,
                               int r, int k) {
  const int64_t at = r * args.stride + k;
  if (args.partial == nullptr) return LoadGroup<kEach>(args.wide_in + at);
  Four<float> residual;  // on its way together with the sums
  if (args.residual != nullptr) residual = LoadGroup<kEach>(args.residual + at);
  Four<float> x = SumOfPieces<kEach>(args.partial + at, args.rows * args.stride,
                                     args.splits);
  if (args.bias != nullptr) Add(x, LoadGroup<kEach>(bias + k));
  for (int i = 0; i < kEach; ++i) x.x[i] = Activate(x.x[i], args.activation);
  if (args.residual != nullptr) Add(x, residual);
  return x;
}

struct Moments {
  float mean;
  float scale;  // 1 / sqrt(variance + eps)
};

// The row's moments; every thread gives the columns that it wrote itself.
TXL_DEVICE Moments MomentsOf(const float* row, int width, float eps,
                             float* sums) {
  float sum = 0;
  for (int k = Thread() * kEach; k < width; k += Threads() * kEach) {
    const Four<float> x = LoadGroup<kEach>(row + k);
    for (int i = 0; i < kEach; ++i) sum += k + i < width ? x.x[i] : 0;
  }
  const float mean = BlockSum(sum, sums) / static_cast<float>(width);
  float squares = 0;
  for (int k = Thread() * kEach; k < width; k += Threads() * kEach) {
    const Four<float> x = LoadGroup<kEach>(row + k);
    for (int i = 0; i < kEach; ++i) {
      const float d = k + i < width ? x.x[i] - mean : 0;
      squares += d * d;
    }
  }
  const float variance =
      BlockSum(squares, sums + kSharedSums / 2) / static_cast<float>(width);
  return {mean, 1.0f / sqrtf(variance + eps)};
}

// One block per row, which it keeps in shared memory. The weights are on their
// way before what they meet is known.
template <bool kSharesWeights, typename T>
TXL_KERNEL_OF(kMaxThreads)
NormRow(NormArgs<T> args) {
  const BlockRows rows = BlockRowsOf<kSharesWeights>(args);
  CloseCopies();
  AwaitEarlierKernels();
  FinishCopies<0>();
  const int r = BlockX();
  for (int k = Thread() * kEach; k < args.stride; k += Threads() * kEach) {
    Four<float> x = InputOf(args, rows.bias, r, k);
    for (int i = 0; i < kEach; ++i) x.x[i] = k + i < args.width ? x.x[i] : 0;
    StoreGroup(rows.row + k, x);
    if (args.sum != nullptr) StoreGroup(args.sum + r * args.stride + k, x);
  }
  if (args.wide == nullptr && args.narrow == nullptr) return;
  Moments moments = {0, 1};
  if (args.gain != nullptr) {
    moments = MomentsOf(rows.row, args.width, args.eps, rows.sums);
  }
  for (int k = Thread() * kEach; k < args.stride; k += Threads() * kEach) {
    Four<float> y = LoadGroup<kEach>(rows.row + k);
    if (args.gain != nullptr) {
      const Four<float> gain = LoadGroup<kEach>(rows.gain + k);
      const Four<float> shift = LoadGroup<kEach>(rows.shift + k);
      for (int i = 0; i < kEach; ++i) {
        const float z =
            (y.x[i] - moments.mean) * moments.scale * gain.x[i] + shift.x[i];
        y.x[i] = k + i < args.width ? z : 0;
      }
    }
    const int64_t at = r * args.stride + k;
    if (args.wide != nullptr) StoreGroup(args.wide + at, y);
    if (args.narrow != nullptr) StoreGroup(args.narrow + at, y);
  }
}

}  // namespace

template <typename T>
void LaunchNorm(Stream& stream, const NormArgs<T>& args) {
  const int64_t warps = (args.stride / kEach + kWarp - 1) / kWarp;
  const int threads =
      static_cast<int>(std::min<int64_t>(warps * kWarp, kMaxThreads));
  const auto row_bytes = static_cast<size_t>(args.stride) * sizeof(float);
  const size_t least = kSharedSums * sizeof(float) + row_bytes;
  const size_t most = least + kWeightRows * row_bytes;
  if (most <= kMostShared) {
    Launch(stream, {{args.rows}, threads, most}, NormRow<true, T>, args);
  } else {
    Launch(stream, {{args.rows}, threads, least}, NormRow<false, T>, args);
  }
}

template void LaunchNorm(Stream&, const NormArgs<float>&);
template void LaunchNorm(Stream&, const NormArgs<Bf16>&);
template void LaunchNorm(Stream&, const NormArgs<F16>&);

}  // namespace txl::cuda
