#pragma once

// Threads for what takes longer than a gRPC thread may be held up: parsing
// large messages, turning text into tokens and back, building large answers.
// (Abseil has no pool that is public.)

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/metrics/server_status.h"

namespace txl {

// A bounded queue with lanes that take turns: a lane that puts in much waits
// behind itself only.

// Not thread-safe.
template <typename Item>
class FairQueue {
 public:
  explicit FairQueue(size_t limit) : limit_(limit) {}

  // Queues `item` at the end of its lane. Returns what found no room, if
  // anything: the item itself or, when another lane has more than this one
  // would have, that lane's newest.
  std::optional<Item> Push(const std::string& lane, Item item) {
    std::optional<Item> dropped;
    if (size_ == limit_) {
      const auto longest = Longest();
      const auto own = lanes_.find(lane);
      const size_t waiting = own == lanes_.end() ? 0 : own->second.size();
      if (longest == lanes_.end() || longest->second.size() <= waiting + 1) {
        return item;
      }
      dropped = std::move(longest->second.back());
      longest->second.pop_back();
      --size_;
    }
    std::deque<Item>& items = lanes_[lane];
    if (items.empty()) turns_.push_back(lane);
    items.push_back(std::move(item));
    ++size_;
    return dropped;
  }

  // The oldest item of the lane whose turn it is. REQUIRES: not empty.
  Item Pop() {
    const std::string lane = std::move(turns_.front());
    turns_.pop_front();
    const auto found = lanes_.find(lane);
    Item item = std::move(found->second.front());
    found->second.pop_front();
    --size_;
    if (found->second.empty()) {
      lanes_.erase(found);
    } else {
      turns_.push_back(lane);
    }
    return item;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

 private:
  using Lanes = std::map<std::string, std::deque<Item>>;

  // A lane of more than one item is never emptied by Push.
  typename Lanes::iterator Longest() {
    auto longest = lanes_.end();
    for (auto at = lanes_.begin(); at != lanes_.end(); ++at) {
      if (longest == lanes_.end() ||
          at->second.size() > longest->second.size()) {
        longest = at;
      }
    }
    return longest;
  }

  const size_t limit_;
  size_t size_ = 0;
  Lanes lanes_;  // none is empty
  std::list<std::string> turns_;
};

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
