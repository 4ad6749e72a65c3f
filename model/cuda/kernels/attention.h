#pragma once

// Attention of a step's rows on the stored rows of their slots, in absorbed
// form (docs/design/step.md). For row r, head h and the visible
// positions j, oldest(t) <= j <= t, at distance delta = t - j:
//
//   score_j = scale * (query[r, h] . c_j + position[r, h, min(delta, D - 1)])
//   out     = sum_j softmax(score)_j c_j
//
// D = `distances`. The memory is cut into `splits` ranges of whole tiles, each
// with its own maximum and sum (Flash-Decoding; arXiv:1805.02867), which are
// merged oldest first. Each stored row is read once for all heads of a block
// and, on tensor cores, for two rows of a prompt (attention_slice.h).

#include <cstddef>
#include <cstdint>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {

// Q is float with any M (plain kernel: any width, any number of heads), or M
// itself, Bf16 or F16 (tensor cores, 16 heads at a time, stride <= 1024).
//
// Slots, positions and what earlier steps stored are read before earlier
// kernels of the graph have ended: none of them writes those.
template <typename Q, typename M>
struct AttentionArgs {
  StepRows rows;
  Rings<M> rings;
  int heads = 0;
  float scale = 1;
  const Q* queries = nullptr;  // [count, heads, rings.stride], zeros behind d
  const float* positions = nullptr;  // [count, heads, position_stride]
  int64_t position_stride = 0;       // >= distances
  int distances = 0;                 // >= 1
  // 1 <= splits <= AttentionTiles(...).
  int splits = 1;
  // The parts, where splits > 1: sum_j 2^(score_j / ln 2 - maximum) c_j, and
  // the sum of the weights alone. Nothing else is written for a split that has
  // no position: its maximum is -inf, its sum 0.
  float* partial = nullptr;  // [count, splits, heads, rings.stride]
  float* maxima = nullptr;   // [count, splits, heads]
  float* sums = nullptr;     // [count, splits, heads]
  Q* out = nullptr;          // [count, heads, rings.stride]
  // Most that a block may have (DeviceFacts); for tensor cores only.
  size_t shared_bytes = 0;
};

// Most tiles that a row's window meets.
int AttentionTiles(int64_t window);
// Splits for which `count` rows fill a device of so many processors.
int AttentionSplits(int count, int heads, int64_t window, int processors);

// Whether there is a tensor core kernel for rows of this stride on a device
// whose blocks may have so much shared memory.
bool HasMatrixAttention(int64_t stride, size_t shared_bytes);

// Both passes: parts of every split, then `out`.
template <typename Q, typename M>
void LaunchAttention(Stream& stream, const AttentionArgs<Q, M>& args);

// The passes that LaunchAttention consists of.

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
