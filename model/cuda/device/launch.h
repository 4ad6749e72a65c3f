#pragma once

// Launches of kernels; for .cu files only.
//
// Launch(stream, shape, kernel, arguments...) queues a kernel; arguments are
// converted to the kernel's parameters. Throws DeviceError where the shape is
// wrong (launch_shape.h) or the device cannot run it. Part of the graph where
// the stream is being captured.

#include <functional>

#include "model/cuda/device/kernel.h"
#include "model/cuda/device/runtime.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace txl::cuda {

// Throws DeviceError where no kernel can be launched so.
void CheckShape(const LaunchShape& shape);

#if defined(__CUDACC__)

cudaStream_t NativeStream(Stream& stream);
// Throws when `result` is an error; `what` opens the message.
void CheckCuda(cudaError_t result, const char* what);

template <typename... Params, typename... Args>
void Launch(Stream& stream, const LaunchShape& shape, void (*kernel)(Params...),
            Args... args) {
  CheckShape(shape);
  constexpr size_t kUsualShared = 48 << 10;
  if (shape.shared_bytes > kUsualShared) {
    CheckCuda(cudaFuncSetAttribute(kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shape.shared_bytes)),
              "shared memory of a kernel");
  }
  const dim3 grid(static_cast<unsigned>(shape.grid.x),
                  static_cast<unsigned>(shape.grid.y),
                  static_cast<unsigned>(shape.grid.z));
  kernel<<<grid, static_cast<unsigned>(shape.threads), shape.shared_bytes,
           NativeStream(stream)>>>(static_cast<Params>(args)...);
  CheckCuda(cudaGetLastError(), "launching a kernel");
}

#else

// Queues `work`, or makes it part of the graph that is being captured.
void RunOn(Stream& stream, std::function<void()> work);

template <typename... Params, typename... Args>
void Launch(Stream& stream, const LaunchShape& shape, void (*kernel)(Params...),
            Args... args) {
  CheckShape(shape);
  RunOn(stream, [=] {
    emulator::Launch(shape, [&] { kernel(static_cast<Params>(args)...); });
  });
}

#endif

}  // namespace txl::cuda
