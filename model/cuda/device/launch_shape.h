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
  GridShape grid;           // blocks: x >= 1, y and z 1 to 65535
  int threads = kWarp;      // of a block: a multiple of kWarp, <= 1024
  size_t shared_bytes = 0;  // dynamic shared memory of a block
};

// What is wrong with a shape on every device; null: nothing.
constexpr const char* ShapeError(const LaunchShape& shape) {
  constexpr int kMostBlocks = 65535;
  const GridShape& grid = shape.grid;
  if (grid.x < 1 || grid.y < 1 || grid.z < 1) return "a grid without blocks";
  if (grid.y > kMostBlocks || grid.z > kMostBlocks) return "too many blocks";
  if (shape.threads < kWarp || shape.threads > 1024 ||
      shape.threads % kWarp != 0) {
    return "a block's threads are not 32 to 1024 in whole warps";
  }
  return nullptr;
}

}  // namespace txl::cuda
