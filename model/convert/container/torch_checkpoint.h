#pragma once

// Files of torch.save: weights, whole modules, training states.

#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// Whether the file starts like one. False also when it cannot be read.
bool LooksLikeTorchFile(const ByteSource& file);

// The zip container and its predecessor, told apart by content. Nothing in the
// pickle is imported, called or constructed; a pickle that mentions what only
// an attack needs is refused. Errors: NotFound; InvalidArgument in one line
// naming file and place.
absl::StatusOr<NativeCheckpoint> ReadTorchFile(const std::string& path);

// Reads bytes that come from elsewhere; `path` is the source's name.
absl::StatusOr<NativeCheckpoint> ReadTorchBytes(
    std::shared_ptr<const ByteSource> file);

}  // namespace txl
