#pragma once

// Runs kernels on the CPU, thread block by thread block, for tests: the same
// source that the device compiler takes. What it is for is finding mistakes:
//
// - blocks run in a random order, and so do the threads of a block between two
//   barriers: a missing barrier gives wrong numbers sooner or later;
// - shared memory begins as NaN and is a heap block of its exact size, so that
//   AddressSanitizer sees an index that is out of bounds;
// - an asynchronous copy takes place when the kernel waits for it, no sooner;
// - threads that wait at different barriers end the program with a message.
//
// One OS thread at a time.

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "model/cuda/device/launch_shape.h"

namespace txl::cuda {

namespace emulator {

// Where the running thread is.
struct Place {
  GridShape block;  // its index
  GridShape grid;   // number of blocks
  int thread = 0;   // in the block
  int threads = 0;  // of the block
};
const Place& CurrentPlace();

// The block's shared memory, aligned to 128 bytes.
unsigned char* SharedMemory();

// Waits for all threads of the block, or of the warp, that have not ended.
void BlockBarrier();
void WarpBarrier();

// Every thread of the warp gives `bytes` (<= 64) at `mine` and receives what
// all 32 gave, [32][64] bytes, valid until the thread's next exchange.
const unsigned char (*Exchange(const void* mine, size_t bytes))[64];

// An asynchronous copy of 4, 8 or 16 bytes; `source` null: zeros.
void CopyLater(void* to, const void* source, size_t bytes);
// Closes the group of copies since the last call.
void CloseCopies();
// Carries out all groups but the newest `left`.
void FinishCopies(int left);

// Runs `body` as every thread of every block. `seed` decides the orders.
void Launch(const LaunchShape& shape, absl::FunctionRef<void()> body);

// Orders of the next launches follow from this. 0 at start.
void SetSeed(uint64_t seed);

}  // namespace emulator
}  // namespace txl::cuda
