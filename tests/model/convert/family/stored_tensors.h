#pragma once

// Tensors and checkpoints in memory for tests of families.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/convert/container/byte_source.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/stored_tensor.h"

namespace txl {

inline StoredTensor FloatTensor(std::vector<int64_t> shape,
                                const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return *RowMajor(DType::kF32, std::move(shape),
                   BytesInMemory(std::move(bytes), "test"));
}

// 0, 1, 2, ... in row-major order, plus `first`.
inline StoredTensor CountingTensor(std::vector<int64_t> shape,
                                   float first = 0) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values(count);
  for (float& value : values) value = first++;
  return FloatTensor(std::move(shape), values);
}

inline std::vector<float> FloatsOf(const StoredTensor& tensor) {
  const std::string bytes = *ReadTensor(tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A state dict at the root of "in_memory.pt".
inline NativeCheckpoint StateDict(std::map<std::string, StoredTensor> tensors) {
  NativeCheckpoint checkpoint;
  checkpoint.path = "in_memory.pt";
  checkpoint.container = "torch zip";
  checkpoint.data = nlohmann::json::object();
  for (const auto& [name, tensor] : tensors) {
    checkpoint.data[name] = {{kTensorKey, name}};
  }
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

}  // namespace txl
