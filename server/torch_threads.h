#pragma once

#include <cstdint>

namespace txl {

// Threads of a step on the CPU: `wanted`, or, when that is 0, one for small
// models and one per core for others. A small model's products are over before
// LibTorch's other threads have woken up, and the native step's take the cores
// that gRPC and clients need (docs/measurements.md).
int ChooseThreads(int wanted, int cores, int64_t parameters);

// Sets LibTorch's threads within an operation. Call before the first one.
void SetTorchThreads(int threads);

}  // namespace txl
