#pragma once

// Which device a configuration means.

#include <c10/core/Device.h>

#include <string>

#include "absl/status/statusor.h"

namespace txl {

// "cpu"; "cuda" or "cuda:N"; "auto": the first CUDA device when LibTorch sees
// one, else the CPU. Errors: InvalidArgument (no such name), FailedPrecondition
// (a CUDA device that is not there).
absl::StatusOr<c10::Device> ResolveDevice(const std::string& name);
// What ResolveDevice tells `who`, named in errors, that sees so many devices.
absl::StatusOr<c10::Device> ResolveDeviceOf(const std::string& name,
                                            int devices, const char* who);

// "cpu", "cuda:0".
std::string DeviceName(c10::Device device);

}  // namespace txl
