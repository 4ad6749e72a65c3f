#include "model/cpu/thread_pool.h"

#include "model/cpu/tile_product.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace txl {
namespace {

// About 20 us: longer than the gap between two phases of a step, short enough
// to leave the core to others between steps.
constexpr int kSpins = 4000;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int worker = 1; worker < threads; ++worker) {
    workers_.emplace_back([this, worker] { Work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::TakeTiles(int worker) {
  uint64_t claim = claim_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(claim) < claim >> 32) {
    if (!claim_.compare_exchange_weak(claim, claim + 1,
                                      std::memory_order_acquire)) {
      continue;
    }
    (*tile_)(static_cast<uint32_t>(claim), worker);
    done_.fetch_add(1, std::memory_order_release);
    claim = claim_.load(std::memory_order_acquire);
  }
  ReleaseTiles();
}

void ThreadPool::Run(int64_t tiles, Tile tile) {
  if (workers_.empty() || tiles <= 1) {
    for (int64_t i = 0; i < tiles; ++i) tile(i, 0);
    ReleaseTiles();
    return;
  }
  tile_ = &tile;
  done_.store(0, std::memory_order_relaxed);
  claim_.store(static_cast<uint64_t>(tiles) << 32, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  TakeTiles(0);
  for (int spins = 0; done_.load(std::memory_order_acquire) != tiles; ++spins) {
    if (spins < kSpins) {
      Pause();
    } else {
      std::this_thread::yield();  // a thread lost its core inside a tile
    }
  }
}

void ThreadPool::Work(int worker) {
  uint32_t seen = 0;
  for (;;) {
    uint32_t now = generation_.load(std::memory_order_acquire);
    for (int spins = 0; now == seen && spins < kSpins; ++spins) {
      Pause();
      now = generation_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      generation_.wait(seen, std::memory_order_acquire);
      continue;
    }
    seen = now;
    if (stopping_.load()) return;
    TakeTiles(worker);
  }
}

}  // namespace txl
