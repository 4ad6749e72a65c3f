#include "model/cuda/step/cuda_products.h"

#include <algorithm>

namespace txl::cuda {
namespace {

template <typename T>
LinearShape Shape(const DeviceMatrix<T>& w, int rows) {
  return {rows, w.inputs, w.outputs, w.batch};
}

template <typename T>
LinearArgs<T> Args(int rows, const DeviceMatrix<T>& w, const T* x) {
  LinearArgs<T> args;
  args.rows = rows;
  args.inputs = w.inputs;
  args.outputs = w.outputs;
  args.batch = w.batch;
  args.x = x;
  args.x_stride = int64_t{w.batch} * w.inputs;
  args.x_batch = w.inputs;
  args.w = w.numbers.data();
  args.out_stride = int64_t{w.batch} * w.outputs;
  args.out_batch = w.outputs;
  return args;
}

}  // namespace

template <typename T>
void CudaProducts::Multiply(int rows, const RowProduct<T>& product) {
  LinearArgs<T> args = Args(rows, product.w, product.x);
  args.bias = product.bias;
  args.residual = product.residual;
  args.activation = product.activation;
  args.wide = product.wide;
  args.narrow = product.narrow;
  if (product.rest != nullptr) {
    args.rest = product.rest;
    args.rest_from = product.rest_from;
    args.out_stride = int64_t{product.w.batch} * product.rest_from;
    args.out_batch = product.rest_from;
  }
  args.range = product.range;
  args.splits =
      LinearSplits(Shape(product.w, rows), FinishedBy::kOwnKernel, processors_);
  args.partial = sums_.data();
  LaunchLinear(stream_, args);
  if (args.splits > 1) LaunchFinishLinear(stream_, args);
}

template <typename T>
CudaProducts::Pieces CudaProducts::MultiplyInPieces(int rows,
                                                    const DeviceMatrix<T>& w,
                                                    const T* x) {
  LinearArgs<T> args = Args(rows, w, x);
  args.splits =
      LinearSplits(Shape(w, rows), FinishedBy::kNextKernel, processors_);
  if (args.splits > 1) {
    args.partial = sums_.data();
  } else {
    args.wide = sums_.data();
  }
  LaunchLinear(stream_, args);
  return {sums_.data(), args.splits};
}

template <typename T>
int64_t MostSums(const CudaWeights<T>& weights, const std::vector<int>& buckets,
                 int processors) {
  const CudaLayer<T>& layer = weights.layers.front();  // they are alike
  std::vector<const DeviceMatrix<T>*> in_pieces = {&layer.wq, &layer.wo,
                                                   &layer.ff_w2};
  std::vector<const DeviceMatrix<T>*> others = {
      &layer.keys, &layer.absorbed_values, &layer.ff_w1};
  for (const CudaBin<T>& bin : weights.bins) {
    others.insert(others.end(), {&bin.words, &bin.in_proj, &bin.out_proj});
  }
  int64_t most = 0;
  for (const int rows : buckets) {
    for (const DeviceMatrix<T>* w : in_pieces) {
      const int splits =
          LinearSplits(Shape(*w, rows), FinishedBy::kNextKernel, processors);
      most = std::max(most, int64_t{splits} * rows * w->outputs);
    }
    for (const DeviceMatrix<T>* w : others) {
      if (!w->exists()) continue;
      const int splits =
          LinearSplits(Shape(*w, rows), FinishedBy::kOwnKernel, processors);
      if (splits == 1) continue;
      most = std::max(most, int64_t{splits} * rows * w->batch * w->outputs);
    }
  }
  return most;
}

#define TXL_PRODUCTS_OF(T)                                         \
  template void CudaProducts::Multiply(int, const RowProduct<T>&); \
  template CudaProducts::Pieces CudaProducts::MultiplyInPieces(    \
      int, const DeviceMatrix<T>&, const T*);                      \
  template int64_t MostSums(const CudaWeights<T>&, const std::vector<int>&, int)
TXL_PRODUCTS_OF(float);
TXL_PRODUCTS_OF(Bf16);
TXL_PRODUCTS_OF(F16);

}  // namespace txl::cuda
