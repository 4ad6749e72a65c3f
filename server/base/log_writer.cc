#include "server/base/log_writer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/clock.h"

namespace txl {
namespace {

constexpr absl::Duration kFlushPoll = absl::Milliseconds(1);

// Signals are for others, and a reader that is gone is an error of write, not
// the process's end.
void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

// 0, or errno where nothing more can be written now; `written` bytes were.
int WriteWhole(int fd, absl::string_view bytes, size_t* written) {
  *written = 0;
  while (*written < bytes.size()) {
    const ssize_t count =
        ::write(fd, bytes.data() + *written, bytes.size() - *written);
    if (count >= 0) {
      *written += static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Another program made the descriptor, which it shares, not blocking.
      pollfd ready = {fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

LogWriter::LogWriter(LogWriterOptions options)
    : options_(std::move(options)),
      fd_(options_.fd),
      thread_([this] { Loop(); }) {}

LogWriter::~LogWriter() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
  CloseOwn(fd_);
}

void LogWriter::CloseOwn(int fd) const {
  if (options_.closes_fd) ::close(fd);
}

void LogWriter::Add(std::string line) {
  const auto size = static_cast<int64_t>(line.size());
  bool begins;
  {
    absl::MutexLock lock(&mutex_);
    if (bytes_ + size <= options_.queue_bytes) {
      bytes_ += size;
      lines_.push_back(std::move(line));
      return;
    }
    begins = CountLost(1);
  }
  if (begins && options_.losing) options_.losing(0);
}

void LogWriter::SwitchTo(int fd) {
  std::optional<int> unused;
  {
    absl::MutexLock lock(&mutex_);
    unused = std::exchange(next_fd_, fd);
  }
  if (unused.has_value()) CloseOwn(*unused);
}

bool LogWriter::CountLost(int64_t lines) {
  dropped_ += lines;
  return lines > 0 && !std::exchange(losing_, true);
}

bool LogWriter::Flush(absl::Duration timeout) {
  // Asks again and again: Abseil's timeouts follow the wall clock and its
  // jumps, and an exit may not.
  const absl::Duration end = Clock::Real()->Monotonic() + timeout;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (lines_.empty() && !writing_) return true;
    }
    if (Clock::Real()->Monotonic() >= end) return false;
    absl::SleepFor(kFlushPoll);
  }
}

int64_t LogWriter::dropped() const {
  absl::MutexLock lock(&mutex_);
  return dropped_;
}

std::optional<std::vector<std::string>> LogWriter::NextLines() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !lines_.empty() || next_fd_.has_value();
  };
  const int before = fd_;
  std::optional<std::vector<std::string>> lines;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&ready));
    if (next_fd_.has_value()) {
      fd_ = *next_fd_;
      next_fd_.reset();
      torn_ = false;
    }
    if (!stopping_ || !lines_.empty()) {
      bytes_ = 0;
      writing_ = !lines_.empty();
      lines = std::exchange(lines_, {});
    }
  }
  // Not under the lock: a slow disk takes its time for it.
  if (fd_ != before) CloseOwn(before);
  return lines;
}

void LogWriter::EndLines(int64_t lost, int error) {
  int64_t news = 0;
  bool begins;
  {
    absl::MutexLock lock(&mutex_);
    begins = CountLost(lost);
    if (error == 0) {
      news = dropped_ - std::exchange(reported_, dropped_);
      losing_ = false;
    }
  }
  if (begins && options_.losing) options_.losing(error);
  if (news > 0 && options_.dropped_line) {
    std::string line = options_.dropped_line(news);
    if (!line.empty()) WriteLine(std::move(line));
  }
  absl::MutexLock lock(&mutex_);
  writing_ = false;
}

void LogWriter::Loop() {
  BlockSignals();
  while (std::optional<std::vector<std::string>> lines = NextLines()) {
    if (lines->empty()) continue;  // only the descriptor is another one
    int64_t lost = 0;
    int error = 0;
    for (std::string& line : *lines) {
      error = WriteLine(std::move(line));
      if (error != 0) ++lost;
    }
    EndLines(lost, error);
  }
}

int LogWriter::WriteLine(std::string line) {
  if (torn_) line.insert(0, 1, '\n');
  line += '\n';
  size_t written = 0;
  const int error = WriteWhole(fd_, line, &written);
  torn_ = error != 0 && (torn_ || written > 0);
  return error;
}

}  // namespace txl
