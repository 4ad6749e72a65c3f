#include "server/engine/device_memory.h"

#include "model/cuda/device/runtime.h"

namespace txl {

std::optional<int64_t> FreeDeviceBytes(int index) {
  cuda::UseDevice(index);
  return static_cast<int64_t>(cuda::CurrentDevice().free_bytes);
}

}  // namespace txl
