#pragma once

// Writing a plan's tensors to a safetensors file, one at a time.

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/convert/family/family.h"

namespace txl {

struct TensorFileOptions {
  std::map<std::string, std::string> metadata;  // of the header
  // Called after each tensor with its name and the bytes of data written so
  // far and in all; may be null.
  std::function<void(absl::string_view name, uint64_t done, uint64_t all)>
      progress;
};

// Writes `tensors` by canonical name to a new file. The same tensors give the
// same bytes: names are sorted, the data starts at a multiple of 8. Memory: one
// piece; for tensors joined along another axis than the first, the tensor.
// Errors: InvalidArgument naming the tensor (NaN or infinity, pieces that do
// not fit together) or what ReadTensor says; those of the file system naming
// `path`. After an error there is no file.
absl::Status WriteTensorFile(
    const std::string& path,
    const std::map<std::string, PlannedTensor>& tensors,
    const TensorFileOptions& options);

}  // namespace txl
