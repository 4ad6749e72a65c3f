#pragma once

// Bits for names and seeds that nobody has to be kept from guessing.

#include <cstdint>

namespace txl {

// 64 bits of the machine's generator. Thread-safe.
uint64_t RandomBits();

}  // namespace txl
