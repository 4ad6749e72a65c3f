#include <gtest/gtest.h>

#include "model/cuda/device/runtime.h"
#include "server/engine/device_name.h"

namespace txl {
namespace {

TEST(DeviceMemoryTest, FreeBytesAreThoseThatNobodyTook) {
  const int64_t before = *FreeDeviceBytes(0);
  const cuda::Memory taken(cuda::MemoryKind::kDevice, 12345);
  EXPECT_EQ(*FreeDeviceBytes(0), before - 12345);
}

}  // namespace
}  // namespace txl
