#pragma once

// CRC-32C (Castagnoli), the checksum of exported sessions and of TensorFlow's
// checkpoints.

#include <cstddef>
#include <cstdint>

namespace txl {

// The checksum of what `crc` was computed from followed by `data`; start
// with 0.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t bytes);

// Checksums that lie in a file together with what they cover are stored
// rotated by 15 bits with a constant added.
uint32_t MaskCrc32c(uint32_t crc);
uint32_t UnmaskCrc32c(uint32_t masked);

}  // namespace txl
