#pragma once

// The zip container of torch.save (torch 1.6 and later).

#include <memory>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/plain_data.h"

namespace txl {

// Reads STEM/data.pkl; storages are the records STEM/data/KEY. Errors: as
// ReadZipDirectory and ReadPickle; InvalidArgument naming file and place (no
// data.pkl, big-endian, a storage without a record or of another size).
absl::StatusOr<PlainData> ReadTorchZip(std::shared_ptr<const ByteSource> file);

}  // namespace txl
