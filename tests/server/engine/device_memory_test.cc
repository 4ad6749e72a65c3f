#include "server/engine/device_memory.h"

#include <gtest/gtest.h>

#include "model/cuda/device/runtime.h"

namespace txl {
namespace {

TEST(DeviceMemoryTest, FreeBytesAreThoseThatNobodyTook) {
  const int64_t before = *FreeDeviceBytes(0);
  const cuda::Memory taken(cuda::MemoryKind::kDevice, 12345);
  EXPECT_EQ(*FreeDeviceBytes(0), before - 12345);
}

}  // namespace
}  // namespace txl
