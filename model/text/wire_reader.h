#pragma once

// The wire format of Protocol Buffers, field by field; for messages of a few
// fields, where generated code is not worth its dependency.

#include <cstdint>

#include "absl/strings/string_view.h"

namespace txl {

class WireReader {
 public:
  // A view: `message` must outlive the reader and what it returns.
  explicit WireReader(absl::string_view message) : rest_(message) {}

  // Moves to the next field. False at the end, and when what follows is no
  // field; ok() tells which.
  bool Next();
  bool ok() const { return ok_; }

  // The current field. `number()` is its value for the types that are numbers,
  // `bytes()` its content for the type that has a length (else empty).
  uint64_t field() const { return field_; }
  bool is_bytes() const { return type_ == 2; }
  bool is_varint() const { return type_ == 0; }
  bool is_float() const { return type_ == 5; }
  uint64_t number() const { return number_; }
  float AsFloat() const;  // REQUIRES: is_float()
  absl::string_view bytes() const { return bytes_; }

 private:
  bool Varint(uint64_t& value);
  bool Fixed(int size);

  absl::string_view rest_;
  bool ok_ = true;
  uint64_t field_ = 0;
  uint64_t type_ = 0;
  uint64_t number_ = 0;
  absl::string_view bytes_;
};

}  // namespace txl
