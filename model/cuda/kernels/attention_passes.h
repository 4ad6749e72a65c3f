#pragma once

// The passes that LaunchAttention consists of.

#include <cstdint>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/attention.h"

namespace txl::cuda {

// The first pass: `out`, or the parts where splits > 1.
// M: float, Bf16 or F16.
template <typename M>
void LaunchPlainParts(Stream& stream, const AttentionArgs<float, M>& args);
// M: Bf16 or F16. REQUIRES: HasMatrixAttention.
template <typename M>
void LaunchMatrixParts(Stream& stream, const AttentionArgs<M, M>& args);

// The second pass, for splits > 1: parts become rows, oldest first.
template <typename Q>
struct MergeArgs {
  int count = 0;
  const int32_t* slot = nullptr;  // [count]; rows with -1 are left alone
  int splits = 1;
  int heads = 0;
  int64_t stride = 0;              // a multiple of 64
  const float* partial = nullptr;  // these as in AttentionArgs
  const float* maxima = nullptr;
  const float* sums = nullptr;
  Q* out = nullptr;
};
// Q: float, Bf16 or F16.
template <typename Q>
void LaunchMergeParts(Stream& stream, const MergeArgs<Q>& args);

}  // namespace txl::cuda
