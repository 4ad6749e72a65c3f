#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/store_row.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 128;

// One block per row.
template <typename M>
TXL_KERNEL StoreRows(StoreArgs<M> args) {
  AwaitEarlierKernels();
  StoreRow(args, BlockX());
}

}  // namespace

template <typename M>
void LaunchStoreRows(Stream& stream, const StoreArgs<M>& args) {
  Launch(stream, {{args.rows.count}, kThreads}, StoreRows<M>, args);
}

template void LaunchStoreRows(Stream&, const StoreArgs<float>&);
template void LaunchStoreRows(Stream&, const StoreArgs<Bf16>&);
template void LaunchStoreRows(Stream&, const StoreArgs<F16>&);

}  // namespace txl::cuda
