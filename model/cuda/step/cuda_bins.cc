#include "model/cuda/step/cuda_bins.h"

#include <algorithm>

#include "model/cuda/kernels/log_softmax.h"

namespace txl::cuda {

template <typename T>
CudaBins<T>::CudaBins(const CudaWeights<T>& weights, int64_t max_rows,
                      CudaProducts& products, Stream& stream)
    : weights_(weights), products_(products), stream_(stream) {
  int64_t widest = 0;
  for (const CudaBin<T>& bin : weights.bins) {
    widest = std::max<int64_t>(widest, bin.out_proj.outputs);
  }
  projected_ = Array<T>(MemoryKind::kDevice, max_rows * widest);
}

template <typename T>
void CudaBins<T>::Queue(const BinRows<T>& rows) {
  const CudaBin<T>& bin = weights_.bins[rows.bin];
  const T* x = rows.x;
  if (bin.out_proj.exists()) {
    RowProduct<T> project = {bin.out_proj, x};
    project.narrow = projected_.data();
    project.range = rows.range;
    products_.Multiply(rows.count, project);
    x = projected_.data();
  }
  RowProduct<T> words = {bin.words, x};
  words.bias = bin.bias.data();
  words.wide = rows.logprobs;
  words.range = rows.range;
  products_.Multiply(rows.count, words);
  LogSoftmaxArgs normalise = {rows.count, bin.outputs, bin.words.outputs,
                              rows.logprobs, rows.range};
  normalise.index = rows.rows;
  normalise.add = rows.masses;
  normalise.add_stride = rows.mass_stride;
  LaunchLogSoftmax(stream_, normalise);
}

template class CudaBins<float>;
template class CudaBins<Bf16>;
template class CudaBins<F16>;

}  // namespace txl::cuda
