#pragma once

// docs/api.md from the comments of proto/txl/v1.

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace txl {

// The reference of these files (paths below `folder`, as imports name them) in
// Markdown. InvalidArgument with the parser's message where one is wrong, or
// where a service, method, message, field or enum value has no comment.
absl::StatusOr<std::string> MakeApiReference(
    const std::string& folder, const std::vector<std::string>& files);

// Those of the public API, in reading order.
std::vector<std::string> ApiFiles();

}  // namespace txl
