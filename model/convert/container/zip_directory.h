#pragma once

// Reads zip archives of records that are stored, not compressed, as torch
// writes them. Built for hostile files.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/zip_record_source.h"

namespace txl {

struct ZipDirectory {
  std::shared_ptr<const ByteSource> file;
  std::map<std::string, ZipRecord, std::less<>> records;  // by name

  // Bytes of a record of `records`. Its CRC-32 is verified before the first
  // byte is given out, by reading all of it once; reads fail with
  // InvalidArgument naming the record when it is another. Thread-safe.
  std::shared_ptr<const ByteSource> Open(const std::string& name) const;
};

// Whether the file starts like an archive. False also when it cannot be read.
bool LooksLikeZip(const ByteSource& file);

// Reads the table of contents (zip64, too) and every record's local header.
// Errors: InvalidArgument naming the file and, where there is one, the record:
// no central directory at the end (a truncated archive), several disks,
// encrypted or compressed records, unsafe names (absolute, "..", a backslash, a
// control character), the same name twice, records that exceed the file or
// overlap, headers that contradict the directory.
absl::StatusOr<ZipDirectory> ReadZipDirectory(
    std::shared_ptr<const ByteSource> file);

}  // namespace txl
