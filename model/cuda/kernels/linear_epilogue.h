#pragma once

// What happens to a product's sums; for .cu files only.

#include "model/cuda/device/kernel.h"
#include "model/cuda/kernels/group.h"
#include "model/cuda/kernels/linear.h"

namespace txl::cuda {

// Step by step as on the CPU (model/cpu/vector_kernels.cc).
TXL_DEVICE float GeluTanh(float x) {
  const float cube = x * x * x;
  const float inner = 0.7978845608028654f * (0.044715f * cube + x);
  // exp overflows to infinity only where tanh is 1 to the last bit.
  const float e = expf(fmaxf(fminf(inner + inner, 80.0f), -80.0f));
  const float tanh = 1.0f - 2.0f / (e + 1.0f);
  return 0.5f * x * (1.0f + tanh);
}

TXL_DEVICE float Activate(float x, LinearActivation activation) {
  if (activation == LinearActivation::kRelu) return x > 0 ? x : 0;
  if (activation == LinearActivation::kGeluTanh) return GeluTanh(x);
  return x;
}

// Where a sum stands: of batch entry b, row r, from output n on.
struct SumPlace {
  int b = 0;
  int r = 0;
  int n = 0;
};

// Where a sum stands in args.rest. REQUIRES: at.n >= args.rest_from.
template <typename T>
TXL_DEVICE int64_t RestIndex(const LinearArgs<T>& args, const SumPlace& at) {
  const int64_t row = static_cast<int64_t>(at.r) * args.batch + at.b;
  return row * (args.outputs - args.rest_from) + at.n - args.rest_from;
}

// Bias, activation, residual and output of N whole sums.
template <typename T, int N>
TXL_DEVICE void FinishSums(const LinearArgs<T>& args, const SumPlace& at,
                           Group<float, N> y) {
  if (args.bias != nullptr) {
    const int64_t n = static_cast<int64_t>(at.b) * args.outputs + at.n;
    Add(y, LoadGroup<N>(args.bias + n));
  }
  for (int i = 0; i < N; ++i) y.x[i] = Activate(y.x[i], args.activation);
  if (args.rest != nullptr && at.n >= args.rest_from) {
    StoreGroup(args.rest + RestIndex(args, at), y);
    return;
  }
  const int64_t out = at.r * args.out_stride + at.b * args.out_batch + at.n;
  if (args.residual != nullptr) {
    Add(y, LoadGroup<N>(args.residual + out));
  }
  if (args.wide != nullptr) StoreGroup(args.wide + out, y);
  if (args.narrow != nullptr) StoreGroup(args.narrow + out, y);
}

// Where the sums of a split stand in args.partial.
template <typename T>
TXL_DEVICE int64_t PartialIndex(const LinearArgs<T>& args, int split,
                                const SumPlace& at) {
  const int64_t row = static_cast<int64_t>(split) * args.rows + at.r;
  return (row * args.batch + at.b) * args.outputs + at.n;
}

// What a kernel does with N sums of a split.
template <typename T, int N>
TXL_DEVICE void StoreSums(const LinearArgs<T>& args, int split,
                          const SumPlace& at, const Group<float, N>& y) {
  if (args.splits == 1) {
    FinishSums(args, at, y);
  } else {
    StoreGroup(args.partial + PartialIndex(args, split, at), y);
  }
}

// What a block does: grid.z counts batch entries, then splits, whose units of
// kLinearUnit inputs are [first, last).
struct SplitPlace {
  int b;
  int split;
  int first;
  int last;
};
template <typename T>
TXL_DEVICE SplitPlace PlaceOfBlock(const LinearArgs<T>& args) {
  const int units = args.inputs / kLinearUnit;
  const int split = BlockZ() / args.batch;
  return {BlockZ() % args.batch, split, units * split / args.splits,
          units * (split + 1) / args.splits};
}

// The rows that a product kernel is for. Begins it: waits for earlier kernels
// where one of them says which rows; else that comes after the weights, which
// no kernel writes, are on their way.
template <typename T>
TXL_DEVICE RowSpan BeginProduct(const LinearArgs<T>& args) {
  if (args.range.begin != nullptr || args.range.end != nullptr) {
    AwaitEarlierKernels();
  } else {
    LetNextBegin();
  }
  return SpanOf(args.range, args.rows);
}

}  // namespace txl::cuda
