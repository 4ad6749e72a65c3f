#pragma once

// How many threads a kernel runs with.

#include <cstddef>

namespace txl::cuda {

inline constexpr int kWarp = 32;

struct GridShape {
  int x = 1;
  int y = 1;
  int z = 1;
};

struct LaunchShape {
  GridShape grid;           // blocks, each dimension >= 1
  int threads = kWarp;      // of a block: a multiple of kWarp, <= 1024
  size_t shared_bytes = 0;  // dynamic shared memory of a block
};

}  // namespace txl::cuda
