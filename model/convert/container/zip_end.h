#pragma once

// The records at the end of a zip archive, which say where its table of
// contents lies.

#include <cstdint>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"

namespace txl {

struct ZipEnd {
  uint64_t entries = 0;
  uint64_t directory_offset = 0;
  uint64_t directory_bytes = 0;  // offset + bytes lies inside the file
};

// Errors: InvalidArgument naming the file (none there: a truncated archive;
// several disks; a directory outside the file).
absl::StatusOr<ZipEnd> ReadZipEnd(const ByteSource& file);

}  // namespace txl
