#pragma once

// Lines on their way to a file descriptor: a bounded queue and a thread of its
// own, so that a reader that stands still holds up nobody but that thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

struct LogWriterOptions {
  int fd = 2;
  // Lines that wait take at most this; what does not fit is dropped.
  int64_t queue_bytes = int64_t{4} << 20;
  // The line (without its end) that says that `lines` were dropped; written
  // once it flows again; empty: none.
  std::function<std::string(int64_t lines)> dropped_line;  // null: none
  // Called when lines begin to be lost, again only after they have flowed:
  // with errno of a write, or 0 where the queue is full. May be null; must not
  // wait.
  std::function<void(int error)> losing;
  bool closes_fd = false;  // the descriptor is the writer's own
};

// Thread-safe. Lines come out in the order of Add, each whole.
class LogWriter {
 public:
  explicit LogWriter(LogWriterOptions options);
  // Writes what waits: the reader reads or is gone.
  ~LogWriter();

  // `line` without its end. Never waits.
  void Add(std::string line) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lines that are not written yet go to `fd`, which has the old one's place
  // in all. Never waits.
  void SwitchTo(int fd) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until all that was added is written or dropped, `timeout` at most;
  // false: it is not yet.
  bool Flush(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lines that found no room or could not be written.
  int64_t dropped() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Absent: stopping, and all is written.
  std::optional<std::vector<std::string>> NextLines()
      ABSL_LOCKS_EXCLUDED(mutex_);
  // 0 or errno of a write.
  int WriteLine(std::string line);
  void EndLines(int64_t lost, int error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether lines begin to be lost.
  bool CountLost(int64_t lines) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseOwn(int fd) const;

  const LogWriterOptions options_;
  int fd_;                // of the thread
  bool torn_ = false;     // a line was written in part; of the thread
  int64_t reported_ = 0;  // dropped lines that were told; of the thread
  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of lines_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool losing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<int> next_fd_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;  // last
};

}  // namespace txl
