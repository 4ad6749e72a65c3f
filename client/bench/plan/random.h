#pragma once

// Numbers that a key alone decides, so that a load can be run again.

#include <cstdint>
#include <initializer_list>
#include <random>

namespace txl::bench {

// Not thread-safe; making one is cheap enough for each turn.
class Random {
 public:
  // Every word of the key counts.
  Random(std::initializer_list<uint64_t> key);

  uint64_t Bits();       // uniform over all values
  double Uniform();      // in [0, 1)
  double Exponential();  // mean 1
  double Normal();       // mean 0, deviation 1

 private:
  std::mt19937_64 engine_;
};

}  // namespace txl::bench
