// Linked into the device kind of kernel tests: where no device is, the program
// fails with a sentence that says so, and runs no test.

#include <gtest/gtest.h>

#include "model/cuda/device/runtime.h"

namespace txl::cuda {
namespace {

class DeviceNeeded : public ::testing::Environment {
 public:
  void SetUp() override {
    if (DeviceCount() == 0) {
      GTEST_FAIL() << "no CUDA device (or no driver of one) is on this machine";
    }
  }
};

[[maybe_unused]] ::testing::Environment* const device_needed =
    ::testing::AddGlobalTestEnvironment(new DeviceNeeded);

}  // namespace
}  // namespace txl::cuda
