#pragma once

// What the tests of whole conversions share: converting a golden case's native
// file and comparing with the case's canonical tensors and fields.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/convert/convert.h"

namespace txl {

// tests/golden/CASE/native/FILE
std::string NativeFile(const std::string& golden_case, const std::string& file);
// tests/golden/CASE/config.json: the fields to run with, a spec.
std::string GoldenSpec(const std::string& golden_case);

// A folder of its own for a test, made and emptied.
std::string FreshFolder(const std::string& name);
std::string FileText(const std::string& path);
void WriteFile(const std::string& path, const std::string& text);

// Converts into FOLDER/model. `spec`: a path, or empty.
absl::StatusOr<ConvertReport> ConvertTo(const std::string& folder,
                                        const std::string& source,
                                        const std::string& spec);

// Expects that every canonical tensor of the case is in DIRECTORY, bit for bit
// (tied ones under the name they are tied to), and nothing else.
void ExpectGoldenTensors(const std::string& directory,
                         const std::string& golden_case);
// Expects the fields of the case's config.json, but those in `except`.
void ExpectGoldenFields(const std::string& directory,
                        const std::string& golden_case,
                        const std::vector<std::string>& except);

}  // namespace txl
