#pragma once

// What a CUDA device has left, where this program was built with CUDA kernels
// (TXL_CUDA); device_memory.cc is then linked, else device_memory_none.cc.

#include <cstdint>
#include <optional>

namespace txl {

// Bytes of device `index` that are not taken; what LibTorch caches is taken.
// Nothing where this program cannot tell. REQUIRES: there is such a device.
std::optional<int64_t> FreeDeviceBytes(int index);

}  // namespace txl
