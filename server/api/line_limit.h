#pragma once

// So many log lines a second and no more, for what clients can cause at will.

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

// Thread-safe.
class LineLimit {
 public:
  explicit LineLimit(int64_t lines_per_second) : limit_(lines_per_second) {}

  // Whether a line may be written now: then the number of lines that were left
  // out since the last one.
  std::optional<int64_t> Take(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      written_ = 0;
    }
    if (written_ == limit_) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    const int64_t left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  const int64_t limit_;
  absl::Mutex mutex_;
  absl::Duration second_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // in this second
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace txl
