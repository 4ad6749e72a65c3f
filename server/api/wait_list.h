#pragma once

// Calls that wait for their clients, the oldest first: to end those that wait
// for too long, or the oldest where there is no room.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

// Thread-safe. Whoever takes a call off the list, and nobody else, may act on
// the end of its wait.
template <typename Call>
class WaitList {
 public:
  using Place = uint64_t;

  // `now` never goes back from one call to the next, but for a little.
  Place Add(std::weak_ptr<Call> call, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    calls_.emplace(next_, Waiting{std::move(call), now});
    return next_++;
  }

  // False: somebody else has taken it off.
  bool Remove(Place place) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return calls_.erase(place) > 0;
  }

  // Takes off all that came before `time`, `most` at most.
  std::vector<std::shared_ptr<Call>> Take(absl::Duration time, int most)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<Call>> taken;
    absl::MutexLock lock(&mutex_);
    while (!calls_.empty() && calls_.begin()->second.since < time &&
           static_cast<int>(taken.size()) < most) {
      // Null where the call is about to take itself off.
      if (auto call = calls_.begin()->second.call.lock()) {
        taken.push_back(std::move(call));
      }
      calls_.erase(calls_.begin());
    }
    return taken;
  }

  int64_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return static_cast<int64_t>(calls_.size());
  }

 private:
  struct Waiting {
    std::weak_ptr<Call> call;
    absl::Duration since;
  };

  mutable absl::Mutex mutex_;
  Place next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<Place, Waiting> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
