#include "tests/bench/device_probe.h"

namespace txl {

absl::StatusOr<DeviceProbe> ProbeDevice(int, bool) { return DeviceProbe(); }

}  // namespace txl
