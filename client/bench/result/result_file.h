#pragma once

// Results in files.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace txl::bench {

// Errors: ReadUserFile's, and InvalidArgument when it is not JSON.
absl::StatusOr<nlohmann::ordered_json> ReadResult(const std::string& path);
// Errors: OutputFile's, which keep the file that was there; a check changes
// nothing.
absl::Status CheckWritable(const std::string& path);
absl::Status WriteFile(const std::string& path, const std::string& content);

// The run that a result is about: itself, or of several runs the main one, with
// all that Compare reads. Errors: InvalidArgument naming `name`, and what is
// missing, for anything else.
absl::StatusOr<nlohmann::ordered_json> MainRunOf(
    const nlohmann::ordered_json& result, const std::string& name);

}  // namespace txl::bench
