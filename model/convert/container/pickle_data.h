#pragma once

// Plain data out of pickles that are no checkpoint: vocabularies.

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"

namespace txl {

// Reads a pickle (protocols 0 to 5, Python 2 or 3) or a file of torch.save, as
// NativeCheckpoint's `data`; tensors are {kTensorKey: name} in torch files.
// Strings may be ill-formed UTF-8. Errors: NotFound; InvalidArgument in one
// line naming file and place.
absl::StatusOr<nlohmann::json> ReadPickleData(const std::string& path);

// Reads a pickle whose bytes come from elsewhere.
absl::StatusOr<nlohmann::json> ReadPickleBytes(
    std::shared_ptr<const ByteSource> file);

}  // namespace txl
