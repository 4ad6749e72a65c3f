#include "model/cuda/kernels/attention.h"

#include <type_traits>

namespace txl::cuda {
namespace {

// Heads that a block of the tensor core kernel takes together.
constexpr int kGroup = 16;
// What filling the pipeline of copies and writing the part costs a block, in
// tiles.
constexpr double kBlockTiles = 2;
// A part is written and read once more, float32 where stored rows have 16 bits:
// 16 heads of it are the bytes of two tiles.
constexpr double kPartTiles = 2;

}  // namespace

int AttentionTiles(int64_t window) {
  // The oldest position may be the last one of its tile.
  return static_cast<int>((window - 1 + kRingTile - 1) / kRingTile + 1);
}

int AttentionSplits(int count, int heads, int64_t window, int processors) {
  const int tiles = AttentionTiles(window);
  const int64_t groups = int64_t{count} * ((heads + kGroup - 1) / kGroup);
  int best = 1;
  double best_cost = 0;
  for (int splits = 1; splits <= tiles; ++splits) {
    const int64_t blocks = groups * splits;
    const int64_t waves = (blocks + processors - 1) / processors;
    const int longest = (tiles + splits - 1) / splits;
    double cost = static_cast<double>(waves) * (longest + kBlockTiles);
    if (splits > 1) {
      cost += kPartTiles * static_cast<double>(blocks) / processors;
    }
    if (splits == 1 || cost < best_cost) {
      best = splits;
      best_cost = cost;
    }
  }
  return best;
}

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
