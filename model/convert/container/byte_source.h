#pragma once

// Bytes that can be read anywhere without being held in memory: a file, or a
// part of one. Readers of checkpoints go through it, so that a conversion needs
// memory for one tensor and not for the file.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/base/regular_file.h"

namespace txl {

// Thread-safe; const after construction.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // What errors call this source: the file, or file and record.
  virtual const std::string& name() const = 0;
  // Fills `out` from `offset` on. Errors: InvalidArgument naming the source
  // when offset + out.size() exceeds size(); DataLoss when the system's read
  // fails or the file has shrunk.
  virtual absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const = 0;
};

inline absl::Status Bad(const ByteSource& source, absl::string_view what) {
  return Bad(source.name(), what);
}

// Whether `source` has `bytes` bytes from `offset` on. InvalidArgument names
// it.
absl::Status CheckRange(const ByteSource& source, uint64_t offset,
                        uint64_t bytes);

// A regular file, opened for reading. Errors: NotFound, InvalidArgument (a
// folder, no regular file), naming the path.
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFile(
    const std::string& path);

// `bytes` bytes of `whole` from `offset` on. Errors: InvalidArgument when they
// exceed it.
absl::StatusOr<std::shared_ptr<const ByteSource>> Slice(
    std::shared_ptr<const ByteSource> whole, uint64_t offset, uint64_t bytes,
    std::string name);

// Bytes in memory: for tests, fuzzing and small inflated records.
std::shared_ptr<const ByteSource> BytesInMemory(std::string bytes,
                                                std::string name);

// Byte sources made of other byte sources.

// `whole`, whose CRC-32C is verified before anything of it is given out: with
// the first read, by reading all of it once. Reads fail with InvalidArgument
// naming the source when the checksum is another.
std::shared_ptr<const ByteSource> WithCrc32c(
    std::shared_ptr<const ByteSource> whole, uint32_t crc);

// `parts` after one another. Errors of a read are those of the part.
std::shared_ptr<const ByteSource> Joined(
    std::vector<std::shared_ptr<const ByteSource>> parts, std::string name);

// A regular file of `bytes` bytes that is opened for each read, for
// checkpoints of more files than a process may hold open.
std::shared_ptr<const ByteSource> ReopenedFile(std::string path,
                                               uint64_t bytes);

}  // namespace txl
