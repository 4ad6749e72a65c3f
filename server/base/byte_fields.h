#pragma once

// Numbers and texts as bytes of files: little-endian, a text after its length.
// How often a field comes, and in which order, is the caller's format.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace txl {

class ByteWriter {
 public:
  void U8(uint8_t value) { Add(value, 1); }
  void U32(uint32_t value) { Add(value, 4); }
  void U64(uint64_t value) { Add(value, 8); }
  void I64(int64_t value) { Add(static_cast<uint64_t>(value), 8); }
  // REQUIRES: shorter than 4 GiB.
  void Text(absl::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    bytes_.append(text.data(), text.size());
  }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  void Add(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) {
      bytes_.push_back(static_cast<char>(value >> (8 * i)));
    }
  }

  std::string bytes_;
};

// Never reads outside the bytes: where they end too early, this and all later
// fields are 0 or empty and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : rest_(bytes) {}

  uint8_t U8() { return static_cast<uint8_t>(Number(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }
  int64_t I64() { return static_cast<int64_t>(Number(8)); }
  std::string Text() { return std::string(Bytes(U32())); }

  bool ok() const { return ok_; }
  // All fields were there and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view Bytes(uint64_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const absl::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  uint64_t Number(uint64_t count) {
    uint64_t value = 0;
    int shift = 0;
    for (const char byte : Bytes(count)) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(byte)) << shift;
      shift += 8;
    }
    return value;
  }

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace txl
