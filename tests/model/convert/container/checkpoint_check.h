#pragma once

// Comparing what a container holds with values that are known.

#include <string>

#include "absl/strings/string_view.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// A file or folder under tests/.
std::string TestFile(absl::string_view path);

// The checkpoint holds exactly the tensors of a safetensors file, with the
// same names, dtypes, shapes and bytes.
void ExpectTensorsOf(const NativeCheckpoint& checkpoint,
                     const std::string& safetensors);

// The bytes of one tensor, which there is.
std::string BytesOf(const NativeCheckpoint& checkpoint,
                    const std::string& tensor);

// All bytes of a source; a failure is the test's.
std::string ReadAll(const ByteSource& source);

}  // namespace txl
