#include "model/train/tensor_file.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/safetensors.h"

namespace txl {
namespace {

at::ScalarType ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return at::kDouble;
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kI64:
      return at::kLong;
    case DType::kI32:
      return at::kInt;
    case DType::kU8:
      break;
  }
  return at::kByte;
}

std::optional<DType> DTypeOf(at::ScalarType type) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                      DType::kI64, DType::kI32, DType::kU8}) {
    if (ScalarTypeOf(dtype) == type) return dtype;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsReader> reader,
                       SafetensorsReader::Open(path));
  TensorFile file;
  file.metadata = reader->metadata();
  for (const auto& [name, info] : reader->tensors()) {
    at::Tensor tensor = at::empty(info.shape, ScalarTypeOf(info.dtype));
    const absl::Span<const uint8_t> bytes = reader->Bytes(info);
    if (!bytes.empty()) {
      std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    }
    file.tensors.emplace(name, std::move(tensor));
  }
  return file;
}

absl::Status WriteTensorFile(const std::string& path, const TensorFile& file) {
  std::vector<at::Tensor> kept;  // keeps the bytes alive until written
  std::map<std::string, TensorBytes> out;
  for (const auto& [name, tensor] : file.tensors) {
    const std::optional<DType> dtype = DTypeOf(tensor.scalar_type());
    if (!dtype.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", name, ": dtype ",
          c10::toString(tensor.scalar_type()), " cannot be written"));
    }
    kept.push_back(tensor.detach().cpu().contiguous());
    const at::Tensor& plain = kept.back();
    out[name] = {
        *dtype, plain.sizes().vec(),
        absl::MakeConstSpan(static_cast<const uint8_t*>(plain.const_data_ptr()),
                            plain.nbytes())};
  }
  return WriteSafetensors(path, out, file.metadata);
}

}  // namespace txl
