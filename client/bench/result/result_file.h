#pragma once

// Results in files.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace txl::bench {

// Errors: NotFound when it cannot be read, InvalidArgument when it is not JSON.
absl::StatusOr<nlohmann::ordered_json> ReadResult(const std::string& path);
// Errors: Unavailable when it cannot be written; a check changes nothing.
absl::Status CheckWritable(const std::string& path);
absl::Status WriteFile(const std::string& path, const std::string& content);

// The run that a result is about: itself, or of several runs the main one, with
// histograms. Errors: InvalidArgument naming `name` for anything else.
absl::StatusOr<nlohmann::ordered_json> MainRunOf(
    const nlohmann::ordered_json& result, const std::string& name);

}  // namespace txl::bench
