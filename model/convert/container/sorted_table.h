#pragma once

// Files of sorted keys with values, as LevelDB writes them: data blocks whose
// keys share prefixes, a block that lists them, a footer. TensorFlow keeps the
// index of a checkpoint in one.

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"

namespace txl {

// Whether the file ends like one. False also when it cannot be read.
bool LooksLikeSortedTable(const ByteSource& file);

// All entries. At most 64 MiB of file, 65536 entries, keys of 1 KiB; every
// block's checksum is verified. Errors: InvalidArgument naming the file
// (truncated, bad checksum, block out of bounds or order, keys out of order,
// compressed blocks).
absl::StatusOr<std::map<std::string, std::string>> ReadSortedTable(
    const ByteSource& file);

}  // namespace txl
