#pragma once

// Files of a checkpoint folder that another file of it names.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// FOLDER/NAME. Errors: InvalidArgument naming `origin`, the file that gave the
// name, when it is not a plain file name (empty, "." or "..", with a separator
// or a control character): a checkpoint names nothing outside its folder.
absl::StatusOr<std::string> FileInside(const std::string& folder,
                                       absl::string_view name,
                                       absl::string_view origin);

// A JSON object of at most 64 MiB. Errors: as OpenFile and ParseJsonObject.
absl::StatusOr<nlohmann::json> ReadJsonObjectFile(const std::string& path);

// At most `max_bytes` of text. Errors: as OpenFile; InvalidArgument when the
// file is larger.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          uint64_t max_bytes);

// Names of the regular files (and of links to such) in a folder, sorted.
// Errors: InvalidArgument naming the folder when it cannot be listed.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder);

bool IsFile(const std::string& path);
bool IsFolder(const std::string& path);

}  // namespace txl
