#pragma once

// Launches of kernels; for .cu files only.
//
// Launch(stream, shape, kernel, arguments...) queues a kernel; arguments are
// converted to the kernel's parameters. Throws DeviceError where the shape is
// wrong (launch_shape.h) or the device cannot run it. Part of the graph where
// the stream is being captured. Where the stream overlaps kernels it may begin
// before another one that was queued right before it ends.

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
bool OverlapsKernels(Stream& stream);
// Whether a kernel that is queued now may begin before the work in front of it
// has ended: only another kernel knows how to allow that. The next one may.
bool TakeMayBeginEarly(Stream& stream);
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
  // A processor runs two kernels at a time only where both want its memory
  // split alike, and stands still while the split changes.
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[0].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(shape.grid.x),
                        static_cast<unsigned>(shape.grid.y),
                        static_cast<unsigned>(shape.grid.z));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = NativeStream(stream);
  config.attrs = attributes;
  config.numAttrs =
      OverlapsKernels(stream) ? 1 + (TakeMayBeginEarly(stream) ? 1 : 0) : 0;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...),
            "launching a kernel");
}

#else

// Queues `work`, or makes it part of the graph that is being captured.
void RunOn(Stream& stream, std::function<void()> work);

template <typename... Params, typename... Args>
void Launch(Stream& stream, const LaunchShape& shape, void (*kernel)(Params...),
            Args... args) {
  CheckShape(shape);
  RunOn(stream, [=] {
    emulator::Launch(shape, [&] {
      kernel(static_cast<Params>(args)...);
      emulator::CheckAwaited();
    });
  });
}

#endif

}  // namespace txl::cuda
