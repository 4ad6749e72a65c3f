#pragma once

// Files of torch.save: weights, whole modules, training states.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/plain_data.h"

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

// The zip container of torch.save (torch 1.6 and later).

// Reads STEM/data.pkl; storages are the records STEM/data/KEY. Errors: as
// ReadZipDirectory and ReadPickle; InvalidArgument naming file and place (no
// data.pkl, big-endian, a storage without a record or of another size).
absl::StatusOr<PlainData> ReadTorchZip(std::shared_ptr<const ByteSource> file);

// The container of torch.save before torch 1.6: five pickles and the storages.

// Whether the file starts with the first pickle, torch's magic number. False
// also when it cannot be read.
bool LooksLikeTorchLegacy(const ByteSource& file);

// Errors: as ReadPickle; InvalidArgument naming file and place (another magic
// number or version, big-endian, storage keys that are not those that the
// tensors use, a storage of another size, a file that ends inside a storage).
absl::StatusOr<PlainData> ReadTorchLegacy(
    std::shared_ptr<const ByteSource> file);

// Plain data from pickles that are not checkpoints: vocabularies.

// Reads a pickle (protocols 0 to 5, Python 2 or 3) or a file of torch.save, as
// NativeCheckpoint's `data`; tensors are {kTensorKey: name} in torch files.
// Strings may be ill-formed UTF-8. Errors: NotFound; InvalidArgument in one
// line naming file and place.
absl::StatusOr<nlohmann::json> ReadPickleData(const std::string& path);

// Reads a pickle whose bytes come from elsewhere.
absl::StatusOr<nlohmann::json> ReadPickleBytes(
    std::shared_ptr<const ByteSource> file);

}  // namespace txl
