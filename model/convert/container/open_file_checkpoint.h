#pragma once

// A checkpoint that one file holds or names.

#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

inline constexpr char kBundleIndexSuffix[] = ".index";

// A torch or safetensors file, or the index or a data file of a TensorFlow
// checkpoint, told apart by content. Errors: NotFound; InvalidArgument in one
// line that names the file and says what it is instead.
absl::StatusOr<NativeCheckpoint> OpenFileCheckpoint(const std::string& path);

// Checkpoints in the safetensors format.

// One file. `data` is the header's __metadata__, or null. Errors: as
// SafetensorsReader::Open.
absl::StatusOr<NativeCheckpoint> ReadSafetensorsFile(const std::string& path);

}  // namespace txl
