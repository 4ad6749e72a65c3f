#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/elements.h"
#include "model/cuda/kernels/queries.h"

namespace txl::cuda {
namespace {

TXL_DEVICE Four<float> Add(const Four<float>& a, const Four<float>& b) {
  Four<float> sum;
  for (int k = 0; k < kElementsEach; ++k) sum.x[k] = a.x[k] + b.x[k];
  return sum;
}

template <typename T>
TXL_KERNEL_OF(kElementThreads)
Queries(QueryArgs<T> args) {
  AwaitEarlierKernels();
  const int64_t size = args.rows * args.width;
  const int64_t i = FirstElement();
  if (i >= size) return;
  Four<float> q = LoadGroup<4>(args.partial + i);
  for (int s = 1; s < args.splits; ++s) {
    q = Add(q, LoadGroup<4>(args.partial + s * size + i));
  }
  const int64_t k = i % args.width;
  StoreGroup(args.content + i, Add(q, LoadGroup<4>(args.content_bias + k)));
  StoreGroup(args.positional + i, Add(q, LoadGroup<4>(args.position_bias + k)));
}

}  // namespace

template <typename T>
void LaunchQueries(Stream& stream, const QueryArgs<T>& args) {
  Launch(stream, ElementShape(args.rows * args.width), Queries<T>, args);
}

template void LaunchQueries(Stream&, const QueryArgs<float>&);
template void LaunchQueries(Stream&, const QueryArgs<Bf16>&);
template void LaunchQueries(Stream&, const QueryArgs<F16>&);

}  // namespace txl::cuda
