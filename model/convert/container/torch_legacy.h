#pragma once

// The container of torch.save before torch 1.6: five pickles and the storages.

#include <memory>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/plain_data.h"

namespace txl {

// Whether the file starts with the first pickle, torch's magic number. False
// also when it cannot be read.
bool LooksLikeTorchLegacy(const ByteSource& file);

// Errors: as ReadPickle; InvalidArgument naming file and place (another magic
// number or version, big-endian, storage keys that are not those that the
// tensors use, a storage of another size, a file that ends inside a storage).
absl::StatusOr<PlainData> ReadTorchLegacy(
    std::shared_ptr<const ByteSource> file);

}  // namespace txl
