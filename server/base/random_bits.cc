#include "server/base/random_bits.h"

#include <random>

namespace txl {

uint64_t RandomBits() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace txl
