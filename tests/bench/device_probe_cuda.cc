#include <cstdint>
#include <exception>

#include "model/cuda/device/runtime.h"
#include "tests/bench/cuda/kernel_times.h"
#include "tests/bench/device_probe.h"

namespace txl {
namespace {

constexpr int64_t kCopyBytes = int64_t{2} << 30;
constexpr int kPasses = 10;

}  // namespace

absl::StatusOr<DeviceProbe> ProbeDevice(int index, bool measure) {
  try {
    cuda::UseDevice(index);
    DeviceProbe probe;
    probe.name = cuda::CurrentDevice().name;
    if (measure) {
      cuda::Stream stream;
      probe.copy_bytes_per_second =
          cuda::CopyBandwidth(stream, kCopyBytes, kPasses);
    }
    return probe;
  } catch (const std::exception& error) {
    return absl::UnavailableError(error.what());
  }
}

}  // namespace txl
