#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/queries.h"
#include "model/cuda/kernels/vectors.h"

namespace txl::cuda {
namespace {

TXL_DEVICE Vector<float> Add(const Vector<float>& a, const Vector<float>& b) {
  Vector<float> sum;
  for (int k = 0; k < kVector; ++k) sum.at[k] = a.at[k] + b.at[k];
  return sum;
}

template <typename T>
TXL_KERNEL_OF(kVectorThreads)
Queries(QueryArgs<T> args) {
  const int64_t size = args.rows * args.width;
  const int64_t i = VectorIndex();
  if (i >= size) return;
  Vector<float> q = LoadVector(args.partial + i);
  for (int s = 1; s < args.splits; ++s) {
    q = Add(q, LoadVector(args.partial + s * size + i));
  }
  const int64_t k = i % args.width;
  StoreNarrow(args.content + i, Add(q, LoadVector(args.content_bias + k)));
  StoreNarrow(args.positional + i, Add(q, LoadVector(args.position_bias + k)));
}

}  // namespace

template <typename T>
void LaunchQueries(Stream& stream, const QueryArgs<T>& args) {
  Launch(stream, VectorShape(args.rows * args.width), Queries<T>, args);
}

template void LaunchQueries(Stream&, const QueryArgs<float>&);
template void LaunchQueries(Stream&, const QueryArgs<Bf16>&);
template void LaunchQueries(Stream&, const QueryArgs<F16>&);

}  // namespace txl::cuda
