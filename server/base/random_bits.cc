#include "server/base/random_bits.h"

#include <unistd.h>

#include <random>

namespace txl {

uint64_t RandomBits() {
  uint64_t bits = 0;
  // The kernel's generator itself: a random_device takes many times as long
  // where it asks the processor's, and every call needs some.
  if (getentropy(&bits, sizeof(bits)) == 0) return bits;
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace txl
