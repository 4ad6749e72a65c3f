// Any bytes as a .npy file.

#include <cstdint>
#include <string>

#include "model/convert/container/npy_array.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tensor = txl::ReadNpy(txl::BytesInMemory(
      std::string(reinterpret_cast<const char*>(data), size), "npy"));
  if (tensor.ok()) txl::ReadTensor(*tensor).status().IgnoreError();
  return 0;
}
