#include "model/cuda/step/cuda_layers.h"

#include "model/cuda/kernels/rows.h"

namespace txl::cuda {
namespace {

LinearActivation ToLinearActivation(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return LinearActivation::kNone;
    case Activation::kRelu:
      return LinearActivation::kRelu;
    case Activation::kGeluTanh:
      return LinearActivation::kGeluTanh;
  }
  return LinearActivation::kNone;
}

}  // namespace

template <typename T, typename M>
CudaLayers<T, M>::CudaLayers(const Parts& parts,
                             const std::vector<int>& buckets)
    : parts_(parts),
      shape_(parts.weights.shape),
      attention_(parts.weights, parts.arena.ring().window, buckets,
                 parts.products, parts.stream) {
  const int64_t rows = buckets.back();
  const int64_t numbers = rows * shape_.stride;
  hidden_ = Array<float>(MemoryKind::kDevice, numbers);
  narrow_in_ = Array<T>(MemoryKind::kDevice, numbers);
  if (pre_norm()) {
    in_ = Array<float>(MemoryKind::kDevice, numbers);
  } else {
    middle_ = Array<float>(MemoryKind::kDevice, numbers);
  }
  narrow_middle_ = Array<T>(MemoryKind::kDevice, numbers);
  inner_ = Array<T>(MemoryKind::kDevice, rows * shape_.inner_stride);
}

template <typename T, typename M>
void CudaLayers<T, M>::Queue(const StepRows& rows) {
  if (pre_norm()) {
    NormArgs<T> norm = Norm(rows.count, NormAfter(-1));
    norm.wide_in = hidden_.data();
    norm.wide = in_.data();
    norm.narrow = narrow_in_.data();
    LaunchNorm(parts_.stream, norm);
  }
  for (int index = 0; index < shape_.layers; ++index) {
    const CudaLayer<T>& layer = parts_.weights.layers[index];
    QueueAttention(layer, index, rows);
    QueueFeedForward(layer, index, rows);
  }
  if (pre_norm() || !parts_.weights.final_norm.has_value()) return;
  NormArgs<T> norm = Norm(rows.count, &*parts_.weights.final_norm);
  norm.wide_in = hidden_.data();
  norm.narrow = narrow_in_.data();
  LaunchNorm(parts_.stream, norm);
}

template <typename T, typename M>
void CudaLayers<T, M>::QueueAttention(const CudaLayer<T>& layer, int index,
                                      const StepRows& rows) {
  const Rings<M> rings = parts_.arena.Layer(index);
  const CudaProducts::Pieces q =
      parts_.products.MultiplyInPieces(rows.count, layer.wq, narrow_in_.data());
  QueryArgs<T> queries;
  queries.width = shape_.query_stride();
  queries.partial = q.sums;
  queries.splits = q.splits;
  queries.queries = attention_.queries();
  LaunchQueries(parts_.stream, queries,
                StoreArgs<M>{rows, in(), shape_.stride, rings});
  attention_.Queue(layer, rows, rings);
  const CudaProducts::Pieces out = parts_.products.MultiplyInPieces(
      rows.count, layer.wo, attention_.values());
  NormArgs<T> norm = Norm(rows.count, pre_norm() ? &layer.ln2 : &layer.ln1);
  norm.partial = out.sums;
  norm.splits = out.splits;
  norm.bias = layer.bo.data();
  norm.residual = hidden_.data();
  norm.narrow = narrow_middle_.data();
  if (pre_norm()) {
    norm.sum = hidden_.data();
  } else {
    norm.wide = middle_.data();
  }
  LaunchNorm(parts_.stream, norm);
}

template <typename T, typename M>
void CudaLayers<T, M>::QueueFeedForward(const CudaLayer<T>& layer, int index,
                                        const StepRows& rows) {
  RowProduct<T> inner = {layer.ff_w1, narrow_middle_.data()};
  inner.bias = layer.ff_b1.data();
  inner.activation = ToLinearActivation(parts_.config.act);
  inner.narrow = inner_.data();
  parts_.products.Multiply(rows.count, inner);
  const CudaProducts::Pieces out =
      parts_.products.MultiplyInPieces(rows.count, layer.ff_w2, inner_.data());
  NormArgs<T> norm = Norm(rows.count, NormAfter(index));
  norm.partial = out.sums;
  norm.splits = out.splits;
  norm.activation = ToLinearActivation(parts_.config.ff_out_act);
  norm.bias = layer.ff_b2.data();
  norm.residual = pre_norm() ? hidden_.data() : middle_.data();
  if (pre_norm()) norm.sum = hidden_.data();
  norm.wide = in();
  norm.narrow = narrow_in_.data();
  LaunchNorm(parts_.stream, norm);
}

template <typename T, typename M>
const DeviceNorm* CudaLayers<T, M>::NormAfter(int index) const {
  const CudaWeights<T>& weights = parts_.weights;
  if (!pre_norm()) return &weights.layers[index].ln2;
  if (index + 1 < shape_.layers) return &weights.layers[index + 1].ln1;
  return weights.final_norm.has_value() ? &*weights.final_norm : nullptr;
}

template <typename T, typename M>
NormArgs<T> CudaLayers<T, M>::Norm(int rows, const DeviceNorm* norm) const {
  NormArgs<T> args;
  args.rows = rows;
  args.width = shape_.width;
  args.stride = shape_.stride;
  args.eps = static_cast<float>(parts_.config.ln_eps);
  if (norm != nullptr) {
    args.gain = norm->gain.data();
    args.shift = norm->shift.data();
  }
  return args;
}

template class CudaLayers<float, float>;
template class CudaLayers<float, Bf16>;
template class CudaLayers<float, F16>;
template class CudaLayers<Bf16, float>;
template class CudaLayers<Bf16, Bf16>;
template class CudaLayers<Bf16, F16>;
template class CudaLayers<F16, float>;
template class CudaLayers<F16, Bf16>;
template class CudaLayers<F16, F16>;

}  // namespace txl::cuda
