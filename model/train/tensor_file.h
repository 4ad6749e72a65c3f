#pragma once

// LibTorch tensors in safetensors files: training checkpoints, and the token
// and log-probability files of `txl-model logprobs`.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace txl {

struct TensorFile {
  std::map<std::string, at::Tensor> tensors;  // CPU, contiguous
  std::map<std::string, std::string> metadata;
};

// Reads every tensor (copied). Errors as SafetensorsReader::Open.
absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path);

// Writes atomically, each tensor in its own dtype. Errors: InvalidArgument for
// a dtype that safetensors files of this project do not hold.
absl::Status WriteTensorFile(const std::string& path, const TensorFile& file);

}  // namespace txl
