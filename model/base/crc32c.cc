#include "model/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace txl {
namespace {

constexpr uint32_t kMaskDelta = 0xa282ead8;
constexpr size_t kMaxCall = size_t{1} << 30;  // the library's length is an int

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t bytes) {
  // The library neither reads `buffer` for writing nor inverts the sum.
  auto* next = static_cast<unsigned char*>(const_cast<void*>(data));
  uint32_t sum = ~crc;
  while (bytes > 0) {
    const size_t now = std::min(bytes, kMaxCall);
    sum = crc32_iscsi(next, static_cast<int>(now), sum);
    next += now;
    bytes -= now;
  }
  return ~sum;
}

uint32_t MaskCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - kMaskDelta;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace txl
