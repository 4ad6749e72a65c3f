#pragma once

// Bytes of a fuzzer as a file, and what is done with a checkpoint read from it.

#include <cstdint>
#include <memory>
#include <string>

#include "model/convert/container/byte_source.h"
#include "model/convert/container/plain_data.h"

namespace txl {

inline std::shared_ptr<const ByteSource> FuzzFile(const uint8_t* data,
                                                  size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(data[i]);
  return BytesInMemory(std::move(text), "fuzz");
}

// Reads small tensors and writes the data as text, as a user of both would.
inline void UsePlainData(const PlainData& plain) {
  constexpr int64_t kMaxBytes = 1 << 20;
  for (const auto& [name, tensor] : plain.tensors) {
    if (tensor.bytes() > kMaxBytes) continue;
    ReadTensor(tensor).status().IgnoreError();
  }
  plain.data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace txl
