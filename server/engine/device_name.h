#pragma once

// Which device a configuration means, and what it has left.

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "model/cuda/device/runtime.h"

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

// Bytes of CUDA device `index` that are not taken; what LibTorch caches is
// taken. Nothing where this program was built without CUDA kernels:
// cuda_builder_none.cc then has the function, else cuda_builder.cc. REQUIRES:
// there is such a device.
std::optional<int64_t> FreeDeviceBytes(int index);

// The border at which LibTorch's and the devices' exceptions become statuses.

// Calls `function`, which returns absl::Status. An exception becomes
// ResourceExhausted when memory ran out, else Internal; its message opens with
// `what`.
template <typename Function>
absl::Status CatchDeviceErrors(const char* what, const Function& function) {
  try {
    return function();
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    return absl::InternalError(
        absl::StrCat(what, ": ", error.what_without_backtrace()));
  } catch (const cuda::DeviceOutOfMemory& error) {  // says how many bytes
    return absl::ResourceExhaustedError(absl::StrCat(what, ": ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": memory is exhausted"));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  }
}

}  // namespace txl
