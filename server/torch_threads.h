#pragma once

namespace txl {

// How many threads LibTorch uses within an operation on the CPU; 0 leaves its
// default. Call before the model is loaded.
void SetTorchThreads(int threads);

}  // namespace txl
