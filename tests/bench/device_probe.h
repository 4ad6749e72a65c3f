#pragma once

// What a CUDA device says and does, where this program was built with TXL_CUDA
// (device_probe_cuda.cc is then linked, else device_probe_none.cc).

#include <string>

#include "absl/status/statusor.h"

namespace txl {

struct DeviceProbe {
  std::string name;                  // empty: not known
  double copy_bytes_per_second = 0;  // read and written; 0: not measured
};

// Measuring takes 4 GiB of the device's memory and gives it back. Errors of the
// device are Unavailable.
absl::StatusOr<DeviceProbe> ProbeDevice(int index, bool measure);

}  // namespace txl
