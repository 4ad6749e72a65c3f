#include <type_traits>

#include "model/cuda/kernels/attention.h"
#include "model/cuda/kernels/attention_passes.h"

namespace txl::cuda {

template <typename Q, typename M>
void LaunchAttention(Stream& stream, const AttentionArgs<Q, M>& args) {
  if constexpr (std::is_same_v<Q, float>) {
    LaunchPlainParts(stream, args);
  } else {
    LaunchMatrixParts(stream, args);
  }
  if (args.splits == 1) return;
  MergeArgs<Q> merge;
  merge.count = args.rows.count;
  merge.slot = args.rows.slot;
  merge.splits = args.splits;
  merge.heads = args.heads;
  merge.stride = args.rings.stride;
  merge.partial = args.partial;
  merge.maxima = args.maxima;
  merge.sums = args.sums;
  merge.out = args.out;
  LaunchMergeParts(stream, merge);
}

template void LaunchAttention(Stream&, const AttentionArgs<float, float>&);
template void LaunchAttention(Stream&, const AttentionArgs<float, Bf16>&);
template void LaunchAttention(Stream&, const AttentionArgs<float, F16>&);
template void LaunchAttention(Stream&, const AttentionArgs<Bf16, Bf16>&);
template void LaunchAttention(Stream&, const AttentionArgs<F16, F16>&);

}  // namespace txl::cuda
