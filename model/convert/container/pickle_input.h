#pragma once

// Reads a stream of pickles forwards, through a small buffer.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/convert/container/byte_source.h"

namespace txl {

// Errors of all readers: InvalidArgument "is truncated" when the bytes end
// before; those of ByteSource::Read. Not thread-safe.
class PickleInput {
 public:
  // From `position` on; `source` outlives this object.
  explicit PickleInput(const ByteSource& source, uint64_t position = 0)
      : source_(source), position_(position) {}

  const std::string& name() const { return source_.name(); }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return source_.size() - position_; }

  absl::StatusOr<uint8_t> Byte();
  // An unsigned little-endian number of 1 to 8 bytes.
  absl::StatusOr<uint64_t> Number(int bytes);
  // Checked against what remains before anything is allocated.
  absl::StatusOr<std::string> Bytes(uint64_t bytes);
  // Up to a line feed, without it, of at most `max_bytes`.
  absl::StatusOr<std::string> Line(uint64_t max_bytes);

 private:
  absl::Status Fill();

  const ByteSource& source_;
  uint64_t position_;
  std::vector<uint8_t> buffer_;
  size_t used_ = 0;  // of the buffer
};

}  // namespace txl
