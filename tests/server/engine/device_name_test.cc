#include "server/engine/device_name.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using ::testing::HasSubstr;

TEST(ResolveDeviceTest, TheCpuIsAlwaysThere) {
  const auto device = ResolveDevice("cpu");
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE(device->is_cpu());
  EXPECT_EQ(DeviceName(*device), "cpu");
}

TEST(ResolveDeviceTest, AutoTakesTheFirstCudaDeviceOrTheCpu) {
  const auto device = ResolveDevice("auto");
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(DeviceName(*device),
            at::globalContext().hasCUDA() ? "cuda:0" : "cpu");
}

TEST(ResolveDeviceTest, ACudaDeviceThatIsNotThereIsNamed) {
  const auto device = ResolveDevice("cuda:99");
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(device.status().message(), HasSubstr("cuda:99"));
}

TEST(ResolveDeviceTest, OtherNamesAreInvalid) {
  for (const char* name :
       {"", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cudax"}) {
    const auto device = ResolveDevice(name);
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_THAT(device.status().message(), HasSubstr("device:"));
  }
}

}  // namespace
}  // namespace txl
