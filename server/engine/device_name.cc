#include "server/engine/device_name.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace txl {
namespace {

int CudaDevices() {
  if (!at::globalContext().hasCUDA()) return 0;
  return at::detail::getCUDAHooks().deviceCount();
}

}  // namespace

absl::StatusOr<c10::Device> ResolveDevice(const std::string& name) {
  return ResolveDeviceOf(name, CudaDevices(), "this LibTorch");
}

absl::StatusOr<c10::Device> ResolveDeviceOf(const std::string& name,
                                            int devices, const char* who) {
  if (name == "cpu") return c10::Device(c10::kCPU);
  if (name == "auto") {
    return devices > 0 ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  }
  int index = 0;
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, "cuda") ||
      !(rest.empty() || (absl::ConsumePrefix(&rest, ":") &&
                         absl::SimpleAtoi(rest, &index) && index >= 0))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device: must be auto, cpu, cuda or cuda:N, not \"", name, "\""));
  }
  if (devices == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("device: \"", name, "\" was asked for, but ", who,
                     " sees no CUDA device; use cpu or auto"));
  }
  if (index >= devices) {
    return absl::FailedPreconditionError(
        absl::StrCat("device: \"", name, "\" was asked for, but there are ",
                     devices, " CUDA devices"));
  }
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

std::string DeviceName(c10::Device device) { return device.str(); }

}  // namespace txl
