#pragma once

// Checkpoints in the safetensors format.

#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// One file. `data` is the header's __metadata__, or null. Errors: as
// SafetensorsReader::Open.
absl::StatusOr<NativeCheckpoint> ReadSafetensorsFile(const std::string& path);

// The files that FOLDER/INDEX ("model.safetensors.index.json") names: its
// weight_map says for every tensor in which file of the folder it lies.
// Errors: InvalidArgument naming the index and the tensor (a file outside the
// folder, a tensor that is not in its file, or in one that it is not said to
// be in); those of ReadSafetensorsFile.
absl::StatusOr<NativeCheckpoint> ReadSafetensorsShards(
    const std::string& folder, const std::string& index);

}  // namespace txl
