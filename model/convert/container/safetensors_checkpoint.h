#pragma once

// Checkpoints in the safetensors format.

#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// One file. `data` is the header's __metadata__, or null. Errors: as
// SafetensorsReader::Open.
absl::StatusOr<NativeCheckpoint> ReadSafetensorsFile(const std::string& path);

}  // namespace txl
