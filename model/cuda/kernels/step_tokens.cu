#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/step_tokens.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 128;

// One thread per row.
TXL_DEVICE int ThisRow() { return BlockX() * kThreads + Thread(); }

LaunchShape ShapeOf(int rows) {
  return {{(rows + kThreads - 1) / kThreads}, kThreads};
}

TXL_KERNEL_OF(kThreads) ResolveTokens(TokenArgs args) {
  AwaitEarlierKernels();
  const int r = ThisRow();
  if (r >= args.rows.count) return;
  const int32_t slot = args.rows.slot[r];
  const bool asks = slot >= 0 && args.follows_sampled[r] != 0;
  const int32_t last = asks ? args.slots.slot(slot)->last_sampled : 0;
  const int32_t given = args.given[r];
  args.unknown[r] = last < 0 ? 1 : 0;
  args.tokens[r] = given >= 0 ? given : last >= 0 ? last : 0;
}

TXL_KERNEL_OF(kThreads) PickRows(PickArgs args) {
  AwaitEarlierKernels();
  const int i = ThisRow();
  if (i >= args.count) return;
  const int32_t r = args.picked[i];
  args.index[i] = r < 0 ? 0 : r;
  args.slot[i] = r < 0 || args.unknown[r] != 0 ? -1 : args.rows.slot[r];
  args.position[i] = r < 0 ? 0 : args.rows.position[r];
}

}  // namespace

void LaunchResolveTokens(Stream& stream, const TokenArgs& args) {
  Launch(stream, ShapeOf(args.rows.count), ResolveTokens, args);
}

void LaunchPickRows(Stream& stream, const PickArgs& args) {
  Launch(stream, ShapeOf(args.count), PickRows, args);
}

}  // namespace txl::cuda
