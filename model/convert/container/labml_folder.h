#pragma once

// Checkpoint folders of the labml library: info.json names the files.

#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// FOLDER/info.json maps a model's name either to its keys and for each an npy
// file, or to one torch file. With one model tensors are named by their key,
// with several npy models by "MODEL.KEY". Errors: InvalidArgument naming
// info.json and the entry (a file outside the folder, several torch files,
// neither form); those of ReadNpy and ReadTorchFile.
absl::StatusOr<NativeCheckpoint> ReadLabmlFolder(const std::string& folder);

}  // namespace txl
