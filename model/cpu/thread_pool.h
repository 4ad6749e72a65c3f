#pragma once

// The threads of one CPU step. Work comes as numbered tiles whose arithmetic is
// fixed by shape; which thread takes a tile does not matter, so that a stalled
// thread costs no more than the tile it holds.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace txl {

// One caller at a time; the caller works too.
class ThreadPool {
 public:
  // `threads` >= 1, the caller included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls tile(i, worker) once for every i in [0, tiles), tiles < 2^31, with
  // `worker` in [0, threads()) naming the thread, and returns when all are
  // done. Tiles must not throw.
  void Run(int64_t tiles, absl::FunctionRef<void(int64_t, int)> tile);

 private:
  using Tile = absl::FunctionRef<void(int64_t, int)>;

  void Work(int worker);
  void TakeTiles(int worker);

  // The open job: tiles in the upper half, the next unclaimed one in the lower.
  // A thread that advances the lower half owns a tile of the job that is open
  // at that moment; this job cannot end before the tile does. Only the owner of
  // a tile reads tile_, so a worker that wakes late delays no other thread.
  alignas(64) std::atomic<uint64_t> claim_{0};
  alignas(64) std::atomic<int64_t> done_{0};  // tiles of the open job
  const Tile* tile_ = nullptr;
  // Changes when a job opens: what workers spin and sleep on.
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace txl
