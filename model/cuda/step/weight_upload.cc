#include "model/cuda/step/weight_upload.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <type_traits>

#include "model/cuda/step/cuda_shape.h"

namespace txl::cuda {
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
