#include "model/text/wire_reader.h"

#include <cstddef>
#include <cstring>

namespace txl {

bool WireReader::Next() {
  if (!ok_ || rest_.empty()) return false;
  bytes_ = absl::string_view();
  uint64_t tag = 0;
  ok_ = Varint(tag);
  field_ = tag >> 3;
  type_ = tag & 7;
  if (!ok_ || field_ == 0) return ok_ = false;
  switch (type_) {
    case 0:
      return ok_ = Varint(number_);
    case 1:
      return ok_ = Fixed(8);
    case 5:
      return ok_ = Fixed(4);
    case 2:
      if (!Varint(number_) || number_ > rest_.size()) return ok_ = false;
      bytes_ = rest_.substr(0, static_cast<size_t>(number_));
      rest_.remove_prefix(bytes_.size());
      return true;
    default:  // groups
      return ok_ = false;
  }
}

float WireReader::AsFloat() const {
  const auto bits = static_cast<uint32_t>(number_);
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

bool WireReader::Varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::Fixed(int size) {
  if (rest_.size() < static_cast<size_t>(size)) return false;
  number_ = 0;
  for (int i = size - 1; i >= 0; --i) {
    number_ = number_ << 8 | static_cast<unsigned char>(rest_[i]);
  }
  rest_.remove_prefix(static_cast<size_t>(size));
  return true;
}

}  // namespace txl
