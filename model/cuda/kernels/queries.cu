#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/group.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {
namespace {

template <typename T>
TXL_DEVICE void AddUpQueries(const QueryArgs<T>& args, int64_t size) {
  const int64_t i = FirstElement();
  if (i >= size) return;
  StoreGroup(args.queries + i,
             SumOfPieces<kElementsEach>(args.partial + i, size, args.splits));
}

// The last rows.count blocks store a row each.
template <typename T, typename M>
TXL_KERNEL_OF(kElementThreads)
Queries(QueryArgs<T> args, StoreArgs<M> store, int query_blocks) {
  AwaitEarlierKernels();
  if (BlockX() < query_blocks) {
    AddUpQueries(args, store.rows.count * args.width);
  } else {
    StoreRow(store, BlockX() - query_blocks, Thread(), Threads());
  }
}

}  // namespace

template <typename T, typename M>
void LaunchQueries(Stream& stream, const QueryArgs<T>& args,
                   const StoreArgs<M>& store) {
  LaunchShape shape = ElementShape(store.rows.count * args.width);
  const int query_blocks = shape.grid.x;
  shape.grid.x += store.rows.count;
  Launch(stream, shape, Queries<T, M>, args, store, query_blocks);
}

#define TXL_QUERIES_OF(T, M) \
  template void LaunchQueries(Stream&, const QueryArgs<T>&, const StoreArgs<M>&)
TXL_QUERIES_OF(float, float);
TXL_QUERIES_OF(float, Bf16);
TXL_QUERIES_OF(float, F16);
TXL_QUERIES_OF(Bf16, float);
TXL_QUERIES_OF(Bf16, Bf16);
TXL_QUERIES_OF(Bf16, F16);
TXL_QUERIES_OF(F16, float);
TXL_QUERIES_OF(F16, Bf16);
TXL_QUERIES_OF(F16, F16);

}  // namespace txl::cuda
