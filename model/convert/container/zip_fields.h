#pragma once

// Little-endian numbers of zip structures.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/byte_source.h"

namespace txl {

// REQUIRES of each reader: so many bytes remain.
class ZipFields {
 public:
  explicit ZipFields(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t remaining() const { return bytes_.size(); }
  uint16_t U16() { return static_cast<uint16_t>(Number(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }
  void Skip(uint64_t bytes) { bytes_.remove_prefix(bytes); }
  absl::string_view Text(uint64_t bytes) {
    const absl::string_view text = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return text;
  }

 private:
  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    for (size_t i = bytes; i-- > 0;) {
      number = number << 8 | static_cast<uint8_t>(bytes_[i]);
    }
    bytes_.remove_prefix(bytes);
    return number;
  }

  absl::string_view bytes_;
};

// `bytes` bytes of `file`. Errors: as ByteSource::Read; checked before
// anything is allocated.
inline absl::StatusOr<std::string> ReadText(const ByteSource& file,
                                            uint64_t offset, uint64_t bytes) {
  if (offset > file.size() || bytes > file.size() - offset) {
    return absl::InvalidArgumentError(file.name() + ": is truncated");
  }
  std::string text(bytes, '\0');
  const absl::Status read = file.Read(
      offset,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size()));
  if (!read.ok()) return read;
  return text;
}

}  // namespace txl
