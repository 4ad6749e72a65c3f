#pragma once

// The border at which LibTorch's and the devices' exceptions become statuses.

#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/cuda/device/runtime.h"

namespace txl {

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
