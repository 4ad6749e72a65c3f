#pragma once

// Runs kernels on the CPU, thread block by thread block, for tests: the same
// source that the device compiler takes. What it is for is finding mistakes:
//
// - blocks run in a random order, and so do the threads of a warp between two
//   barriers, while any warp may run far ahead of the others until it meets a
//   barrier of the block: a missing barrier gives wrong numbers sooner or
//   later;
// - shared memory begins as NaN and ends in bytes that nobody may touch
//   (AddressSanitizer tells at once, other builds at the end of the block);
// - an asynchronous copy takes place at once or when the kernel waits for it;
// - a thread that ends without having waited for earlier kernels ends the
//   program with a message (that they do run at the same time is not emulated);
// - threads that wait at different barriers, that exchange different things or
//   exchange with threads that ended, misaligned copies and copies to what is
//   not shared memory end the program with a message.
//
// It does not find: threads that see each other's writes too late although they
// waited (memory ordering between blocks), bank conflicts, and a warp's threads
// that rely on one another between barriers in one of the orders it did not
// happen to take.
//
// One OS thread at a time: callers take turns (runtime_emulated.cc).

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

// The block's shared memory, aligned to 128 bytes; null where it has none.
unsigned char* SharedMemory();
bool IsShared(const void* data, size_t bytes);

// Waits for all threads of the block, or of the warp, that have not ended.
void BlockBarrier();
void WarpBarrier();

// Notes that the thread waited for earlier kernels; ends the program where it
// did not.
void AwaitEarlierKernels();
void CheckAwaited();

// Every thread of the warp gives `bytes` (<= 64) at `mine` and receives what
// all 32 gave, [32][64] bytes, valid until the thread's next exchange.
const unsigned char (*Exchange(const void* mine, size_t bytes))[64];

// An asynchronous copy of 4, 8 or 16 bytes; zeros where not `valid`.
void CopyLater(void* to, const void* from, size_t bytes, bool valid);
// Closes the group of copies since the last call.
void CloseCopies();
// Carries out what is left of all groups but the newest `left`.
void FinishCopies(int left);

// Runs `body` as every thread of every block.
void Launch(const LaunchShape& shape, absl::FunctionRef<void()> body);

// Ends the program because of a mistake in the running kernel.
[[noreturn]] void Fail(const char* what);

// All random choices follow from this. 0 at start.
void SetSeed(uint64_t seed);
// The next of them, for other parts of the emulated device.
uint64_t Random();

// This thread's `nth` call from now that queues work on a stream, 1 the next,
// throws DeviceOutOfMemory instead; 0: none does.
void FailQueueing(int nth);

}  // namespace emulator
}  // namespace txl::cuda
