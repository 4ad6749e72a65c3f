#pragma once

// Threads for what takes longer than a gRPC thread may be held up: parsing
// large messages, turning text into tokens and back, building large answers.
// (Abseil has no pool that is public.)

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/fair_queue.h"
#include "server/base/clock.h"
#include "server/metrics/server_status.h"

namespace txl {

struct WorkPoolOptions {
  int threads = 1;                                  // > 0
  int64_t longest_queue = 256;                      // tasks that wait, > 0
  absl::Duration longest_wait = absl::Seconds(10);  // of a task
  absl::Duration retry_after = absl::Seconds(1);    // RetryInfo of a refusal
};

// Threads for a machine of so many cores; a step's own threads need the rest.
int WorkThreads(int cores);

// RESOURCE_EXHAUSTED, OVERLOADED with RetryInfo.
absl::Status OverloadedError(absl::string_view message, absl::Duration retry);

// Thread-safe.
class WorkPool {
 public:
  // Called once: with OK on one of the pool's threads or, when it cannot run,
  // with OVERLOADED on any thread.
  using Task = std::function<void(const absl::Status&)>;

  explicit WorkPool(const WorkPoolOptions& options,
                    Clock* clock = Clock::Real());
  // Runs what waits, then ends.
  ~WorkPool();

  // Runs `task` soon. Connections take turns; `peer` names one. Where the queue
  // is full, the connection with the most tasks loses its newest.
  void Run(const std::string& peer, Task task) ABSL_LOCKS_EXCLUDED(mutex_);

  WorkCounts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    Task task;
    absl::Duration since;
  };

  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  const WorkPoolOptions options_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  FairQueue<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  WorkCounts counts_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last
};

}  // namespace txl
