#include "model/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace txl {
namespace {

TEST(ThreadPool, EveryTileRunsOnceWhateverTheNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t tiles : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(tiles);
      pool.Run(tiles, [&](int64_t i, int worker) {
        ASSERT_GE(worker, 0);
        ASSERT_LT(worker, threads);
        runs[i].fetch_add(1);
      });
      for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, WritesOfTilesAreSeenAfterRun) {
  ThreadPool pool(4);
  std::vector<int64_t> values(257);
  for (int64_t round = 0; round < 2000; ++round) {
    pool.Run(static_cast<int64_t>(values.size()),
             [&](int64_t i, int) { values[i] += i + round; });
  }
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], 2000 * static_cast<int64_t>(i) + 1999 * 1000);
  }
}

// A worker's scratch may be used without a lock: no two tiles at a time have
// the same worker.
TEST(ThreadPool, AWorkerRunsOneTileAtATime) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  std::vector<std::atomic<bool>> busy(kThreads);
  std::atomic<int> clashes{0};
  for (int round = 0; round < 200; ++round) {
    pool.Run(50, [&](int64_t, int worker) {
      if (busy[worker].exchange(true)) clashes.fetch_add(1);
      std::this_thread::yield();
      busy[worker].store(false);
    });
  }
  EXPECT_EQ(clashes.load(), 0);
}

// The tile that holds a thread up holds nobody else up: the others' tiles are
// done by then.
TEST(ThreadPool, AStalledTileLeavesTheRestToOthers) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  std::atomic<bool> first_waited_for_all{false};
  pool.Run(100, [&](int64_t i, int) {
    if (i == 0) {
      while (done.load() < 99) std::this_thread::yield();
      first_waited_for_all.store(true);
    } else {
      done.fetch_add(1);
    }
  });
  EXPECT_TRUE(first_waited_for_all.load());
}

TEST(ThreadPool, SleepingWorkersWakeForTheNextJob) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.Run(10, [&](int64_t i, int) { sum.fetch_add(i); });
  }
  EXPECT_EQ(sum.load(), 5 * 45);
}

}  // namespace
}  // namespace txl
