#include "model/cuda/step/cuda_attention.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "model/cuda/kernels/attention.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {
namespace {

template <typename T, typename M>
constexpr bool kHalfPair = std::is_same_v<T, M> && !std::is_same_v<T, float>;

template <typename T>
Array<T> DeviceArray(int64_t size) {
  return Array<T>(MemoryKind::kDevice, size);
}

}  // namespace

template <typename T, typename M>
CudaAttention<T, M>::CudaAttention(const CudaWeights<T>& weights,
                                   int64_t window,
                                   const std::vector<int>& buckets,
                                   CudaProducts& products, Stream& stream)
    : shape_(weights.shape),
      window_(window),
      products_(products),
      stream_(stream),
      processors_(CurrentDevice().processors),
      shared_bytes_(CurrentDevice().shared_bytes),
      by_tensor_cores_(kHalfPair<T, M> &&
                       HasMatrixAttention(shape_.stride, shared_bytes_)) {
  const int64_t rows = buckets.back();
  const int64_t queries = rows * shape_.heads;
  queries_ = DeviceArray<T>(queries * shape_.head_stride);
  position_scores_ = DeviceArray<float>(queries * shape_.distance_stride);
  if (by_tensor_cores_) {
    absorbed_ = DeviceArray<T>(queries * shape_.stride);
  } else {
    wide_absorbed_ = DeviceArray<float>(queries * shape_.stride);
    wide_attended_ = DeviceArray<float>(queries * shape_.stride);
  }
  if (by_tensor_cores_ || !std::is_same_v<T, float>) {
    attended_ = DeviceArray<T>(queries * shape_.stride);
  }
  int64_t parts = 0;
  for (const int bucket : buckets) {
    parts = std::max(parts, int64_t{bucket} * Splits(bucket) * shape_.heads);
  }
  partial_ = DeviceArray<float>(parts * shape_.stride);
  maxima_ = DeviceArray<float>(parts);
  sums_ = DeviceArray<float>(parts);
  values_ = DeviceArray<T>(queries * shape_.head_stride);
}

template <typename T, typename M>
int CudaAttention<T, M>::Splits(int rows) const {
  return AttentionSplits(rows, shape_.heads, window_, processors_);
}

template <typename T, typename M>
void CudaAttention<T, M>::Queue(const CudaLayer<T>& layer, const StepRows& rows,
                                const Rings<M>& rings) {
  const T* attended = attended_.data();
  if constexpr (kHalfPair<T, M>) {
    if (by_tensor_cores_) {
      QueueWith<T>(layer, rows, rings, absorbed_, attended_);
    }
  }
  if (!by_tensor_cores_) {
    QueueWith<float>(layer, rows, rings, wide_absorbed_, wide_attended_);
    if constexpr (std::is_same_v<T, float>) {
      attended = wide_attended_.data();
    } else {
      LaunchNarrow(stream_, wide_attended_.data(),
                   int64_t{rows.count} * shape_.heads * shape_.stride,
                   attended_.data());
    }
  }
  RowProduct<T> values = {layer.absorbed_values, attended};
  values.bias = layer.value_bias.data();
  values.narrow = values_.data();
  products_.Multiply(rows.count, values);
}

template <typename T, typename M>
template <typename Q>
void CudaAttention<T, M>::QueueWith(const CudaLayer<T>& layer,
                                    const StepRows& rows, const Rings<M>& rings,
                                    Array<Q>& absorbed, Array<Q>& sums) {
  RowProduct<T> keys = {layer.keys, queries_.data()};
  keys.bias = layer.key_bias.data();
  if constexpr (std::is_same_v<Q, float>) {
    keys.wide = absorbed.data();
  } else {
    keys.narrow = absorbed.data();
  }
  keys.rest = position_scores_.data();
  keys.rest_from = shape_.stride;
  products_.Multiply(rows.count, keys);
  AttentionArgs<Q, M> args;
  args.rows = rows;
  args.rings = rings;
  args.heads = shape_.heads;
  args.scale =
      static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.head_width)));
  args.queries = absorbed.data();
  args.positions = position_scores_.data();
  args.position_stride = shape_.distance_stride;
  args.distances = shape_.distances;
  args.splits = Splits(rows.count);
  args.partial = partial_.data();
  args.maxima = maxima_.data();
  args.sums = sums_.data();
  args.out = sums.data();
  args.shared_bytes = shared_bytes_;
  LaunchAttention(stream_, args);
}

template class CudaAttention<float, float>;
template class CudaAttention<float, Bf16>;
template class CudaAttention<float, F16>;
template class CudaAttention<Bf16, float>;
template class CudaAttention<Bf16, Bf16>;
template class CudaAttention<Bf16, F16>;
template class CudaAttention<F16, float>;
template class CudaAttention<F16, Bf16>;
template class CudaAttention<F16, F16>;

}  // namespace txl::cuda
