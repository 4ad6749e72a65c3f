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

// False when nothing more can be written now; `written` bytes were.
bool WriteWhole(int fd, absl::string_view bytes, size_t* written) {
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
      return false;
    }
  }
  return true;
}

}  // namespace

LogWriter::LogWriter(LogWriterOptions options)
    : options_(options), thread_([this] { Loop(); }) {}

LogWriter::~LogWriter() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void LogWriter::Add(std::string line) {
  const auto size = static_cast<int64_t>(line.size());
  absl::MutexLock lock(&mutex_);
  if (bytes_ + size > options_.queue_bytes) {
    ++dropped_;
    return;
  }
  bytes_ += size;
  lines_.push_back(std::move(line));
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

std::vector<std::string> LogWriter::NextLines() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !lines_.empty();
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&ready));
  bytes_ = 0;
  writing_ = true;
  return std::exchange(lines_, {});
}

void LogWriter::EndLines(int64_t lost, bool written) {
  int64_t news = 0;
  {
    absl::MutexLock lock(&mutex_);
    dropped_ += lost;
    if (written) news = dropped_ - std::exchange(reported_, dropped_);
  }
  if (news > 0 && options_.dropped_line != nullptr) {
    WriteLine(options_.dropped_line(news));
  }
  absl::MutexLock lock(&mutex_);
  writing_ = false;
}

void LogWriter::Loop() {
  BlockSignals();
  while (true) {
    std::vector<std::string> lines = NextLines();
    if (lines.empty()) return;  // stopping, all written
    int64_t lost = 0;
    bool written = false;
    for (std::string& line : lines) {
      written = WriteLine(std::move(line));
      if (!written) ++lost;
    }
    EndLines(lost, written);
  }
}

bool LogWriter::WriteLine(std::string line) {
  if (torn_) line.insert(0, 1, '\n');
  line += '\n';
  size_t written = 0;
  if (WriteWhole(options_.fd, line, &written)) {
    torn_ = false;
    return true;
  }
  torn_ = torn_ || written > 0;
  return false;
}

}  // namespace txl
