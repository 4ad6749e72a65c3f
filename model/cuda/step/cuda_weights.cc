#include "model/cuda/step/cuda_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <type_traits>

#include "model/checkpoint/weights.h"
#include "model/cuda/step/cuda_shape.h"
#include "model/reference/attention.h"

namespace txl::cuda {
namespace {

DeviceNorm UploadNorm(WeightUpload& upload, const at::Tensor& g,
                      const at::Tensor& b) {
  const int64_t stride = PaddedWidth(g.numel());
  return {upload.Numbers(PadTo(g, 0, stride)),
          upload.Numbers(PadTo(b, 0, stride))};
}

Array<float> UploadBias(WeightUpload& upload, const at::Tensor& t) {
  if (!t.defined()) return {};
  return upload.Numbers(PadTo(t, 0, PaddedWidth(t.size(0))));
}

// Views of one layer's tensors: heads apart and padded.
class HeadViews {
 public:
  explicit HeadViews(const CudaShape& shape) : shape_(shape) {}

  // [H D, ...] -> [H, Dp, ...]
  at::Tensor Rows(const at::Tensor& t) const {
    at::DimVector sizes(t.sizes());
    sizes[0] = shape_.head_width;
    sizes.insert(sizes.begin(), shape_.heads);
    return PadTo(t.reshape(sizes), 1, shape_.head_stride);
  }
  // [d, H D] -> [d, H Dp]
  at::Tensor Columns(const at::Tensor& t) const {
    return Rows(t.t()).reshape({shape_.query_stride(), t.size(0)}).t();
  }
  // [H D] or undefined, which is zeros -> [H, Dp]
  at::Tensor Bias(const at::Tensor& t) const {
    if (t.defined()) return Rows(t.reshape({-1}));
    return at::zeros({shape_.heads, shape_.head_stride});
  }

 private:
  const CudaShape& shape_;
};

// Positional keys of every head by distance, [H, distance_stride, Dp], and what
// a table adds to their scores, [H, distance_stride] or undefined.
struct PositionKeys {
  at::Tensor keys;
  at::Tensor bias;
};

PositionKeys MakePositionKeys(const ModelConfig& config, const CudaShape& shape,
                              const LayerWeights& layer,
                              const at::Tensor& encoding) {
  at::Tensor keys;  // [distances, H, D]
  at::Tensor bias;
  if (config.pos == PositionKind::kTable) {
    keys = TableRows(config, layer.rel_t, shape.distances);
    bias = PadTo(TableRows(config, layer.rel_s, shape.distances).t(), 1,
                 shape.distance_stride);
  } else {
    keys = at::mm(encoding, layer.wr.to(at::kDouble).t())
               .to(at::kFloat)
               .view({-1, shape.heads, shape.head_width});
  }
  keys = PadTo(keys.transpose(0, 1), 1, shape.distance_stride);
  return {PadTo(keys, 2, shape.head_stride), bias};
}

// keys [H, n, Dp] times a bias of the query [H, Dp]: [H, n] in float64.
at::Tensor TimesBias(const at::Tensor& keys, const at::Tensor& bias) {
  return at::bmm(keys.to(at::kDouble), bias.to(at::kDouble).unsqueeze(2))
      .squeeze(2);
}

template <typename T>
void UploadKeys(WeightUpload& upload, const HeadViews& heads,
                const CudaShape& shape, const LayerWeights& layer,
                const PositionKeys& positions, CudaLayer<T>& out) {
  const at::Tensor content =
      PadTo(heads.Rows(layer.wk).transpose(1, 2), 1, shape.stride);
  out.keys = upload.Matrix<T>(at::cat({content, positions.keys}, 1));
  const at::Tensor bq = heads.Bias(layer.bq);
  at::Tensor of_positions = TimesBias(positions.keys, bq + heads.Bias(layer.v));
  if (positions.bias.defined()) of_positions = of_positions + positions.bias;
  out.key_bias = upload.Numbers(
      at::cat({TimesBias(content, bq + heads.Bias(layer.u)), of_positions}, 1)
          .to(at::kFloat));
}

template <typename T>
CudaLayer<T> UploadLayer(WeightUpload& upload, const ModelConfig& config,
                         const CudaShape& shape, const LayerWeights& layer,
                         const at::Tensor& encoding) {
  const HeadViews heads(shape);
  CudaLayer<T> out;
  out.wq = upload.Matrix<T>(
      heads.Rows(layer.wq).reshape({shape.query_stride(), shape.width}));
  UploadKeys(upload, heads, shape, layer,
             MakePositionKeys(config, shape, layer, encoding), out);
  out.absorbed_values = upload.Matrix<T>(heads.Rows(layer.wv));
  if (layer.bv.defined()) out.value_bias = upload.Numbers(heads.Bias(layer.bv));
  out.wo = upload.Matrix<T>(heads.Columns(layer.wo));
  out.bo = UploadBias(upload, layer.bo);
  out.ln1 = UploadNorm(upload, layer.ln1_g, layer.ln1_b);
  out.ln2 = UploadNorm(upload, layer.ln2_g, layer.ln2_b);
  out.ff_w1 = upload.Matrix<T>(layer.ff_w1);
  out.ff_b1 = UploadBias(upload, layer.ff_b1);
  out.ff_w2 = upload.Matrix<T>(layer.ff_w2);
  out.ff_b2 = UploadBias(upload, layer.ff_b2);
  return out;
}

template <typename T>
CudaBin<T> UploadBin(WeightUpload& upload, const ModelConfig& config,
                     const Weights& weights, int64_t bin) {
  const HeadBin& head = weights.head[bin];
  const EmbeddingBin& embedding = weights.embedding[bin];
  const auto [words, bias] = OutputsOfBin(config, weights, bin);
  CudaBin<T> out;
  out.words = upload.Matrix<T>(words);
  out.outputs = static_cast<int>(words.size(0));
  out.bias = UploadBias(upload, bias);
  if (head.proj.defined()) out.out_proj = upload.Matrix<T>(head.proj.t());
  out.in_proj = upload.Matrix<T>(embedding.proj);
  if (!embedding.w.is_alias_of(head.w)) {
    out.embedding = upload.Matrix<T>(embedding.w);
  }
  return out;
}

}  // namespace

template <typename T>
CudaWeights<T> UploadWeights(const ModelConfig& config,
                             const Weights& weights) {
  c10::InferenceMode guard;
  WeightUpload upload;
  CudaWeights<T> out;
  out.shape = MakeCudaShape(config);
  at::Tensor encoding;
  if (config.pos != PositionKind::kTable) {
    encoding =
        PositionEncoding(config, weights, out.shape.distances).to(at::kDouble);
  }
  for (const LayerWeights& layer : weights.layers) {
    out.layers.push_back(
        UploadLayer<T>(upload, config, out.shape, layer, encoding));
  }
  for (int64_t bin = 0; bin < config.n_bins(); ++bin) {
    out.bins.push_back(UploadBin<T>(upload, config, weights, bin));
  }
  if (weights.beat.defined()) {
    out.beat = upload.Numbers(PadTo(weights.beat, 1, out.shape.stride));
    out.bar = upload.Numbers(PadTo(weights.bar, 1, out.shape.stride));
  }
  if (weights.final_g.defined()) {
    out.final_norm = UploadNorm(upload, weights.final_g, weights.final_b);
  }
  return out;
}

template CudaWeights<float> UploadWeights(const ModelConfig&, const Weights&);
template CudaWeights<Bf16> UploadWeights(const ModelConfig&, const Weights&);
template CudaWeights<F16> UploadWeights(const ModelConfig&, const Weights&);

namespace {

template <typename T>
constexpr at::ScalarType kScalarType = std::is_same_v<T, Bf16>  ? at::kBFloat16
                                       : std::is_same_v<T, F16> ? at::kHalf
                                                                : at::kFloat;

// The numbers of a contiguous tensor whose type is T's.
template <typename T>
Array<T> Upload(Stream& stream, const at::Tensor& t) {
  Array<T> out(MemoryKind::kDevice, t.numel());
  stream.Copy(out.data(), t.const_data_ptr(), static_cast<size_t>(out.bytes()));
  stream.Wait();  // the tensor may go
  return out;
}

}  // namespace

at::Tensor PadTo(const at::Tensor& t, int64_t dim, int64_t size) {
  if (t.size(dim) == size) return t;
  at::DimVector sizes(t.sizes());
  sizes[dim] = size - t.size(dim);
  return at::cat({t, at::zeros(sizes, t.options())}, dim);
}

template <typename T>
DeviceMatrix<T> WeightUpload::Matrix(const at::Tensor& t) {
  if (!t.defined()) return {};
  const at::Tensor heads = t.dim() == 2 ? t.unsqueeze(0) : t;
  at::Tensor padded = PadTo(heads, 1, PaddedWidth(heads.size(1)));
  padded = PadTo(padded, 2, PaddedWidth(heads.size(2)));
  DeviceMatrix<T> out;
  out.batch = static_cast<int>(padded.size(0));
  out.outputs = static_cast<int>(padded.size(1));
  out.inputs = static_cast<int>(padded.size(2));
  out.numbers = Upload<T>(stream_, padded.to(kScalarType<T>).contiguous());
  return out;
}

Array<float> WeightUpload::Numbers(const at::Tensor& t) {
  if (!t.defined()) return {};
  return Upload<float>(stream_, t.contiguous());
}

template DeviceMatrix<float> WeightUpload::Matrix(const at::Tensor&);
template DeviceMatrix<Bf16> WeightUpload::Matrix(const at::Tensor&);
template DeviceMatrix<F16> WeightUpload::Matrix(const at::Tensor&);

}  // namespace txl::cuda
