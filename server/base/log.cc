#include "server/base/log.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/base/const_init.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/clock.h"

namespace txl {
namespace {

std::atomic<LogSeverity> g_level{LogSeverity::kInfo};
ABSL_CONST_INIT absl::Mutex g_mutex(absl::kConstInit);
ABSL_CONST_INIT LogCapture* g_capture ABSL_GUARDED_BY(g_mutex) = nullptr;

std::string DroppedLine(int64_t lines) {
  return FormatLog(Clock::Real()->Now(), LogSeverity::kWarning, "log_dropped",
                   {{"lines", lines}});
}

// Lives until the process ends, whatever other threads still log then.
LogWriter& Writer() {
  static auto* const writer = [] {
    LogWriterOptions options;
    options.dropped_line = &DroppedLine;
    return new LogWriter(std::move(options));
  }();
  return *writer;
}

}  // namespace

void Log(LogSeverity severity, absl::string_view event,
         const LogFields& fields) {
  if (severity < g_level.load(std::memory_order_relaxed)) return;
  std::string line = FormatLog(Clock::Real()->Now(), severity, event, fields);
  {
    absl::MutexLock lock(&g_mutex);
    if (g_capture != nullptr) {
      g_capture->Add(std::move(line));
      return;
    }
  }
  Writer().Add(std::move(line));
}

int64_t LogLinesDropped() { return Writer().dropped(); }

void LogPlain(std::string line) { Writer().Add(std::move(line)); }

void FlushLog(absl::Duration timeout) { Writer().Flush(timeout); }

void SetLogLevel(LogSeverity severity) {
  g_level.store(severity, std::memory_order_relaxed);
}

LogSeverity LogLevel() { return g_level.load(std::memory_order_relaxed); }

LogCapture::LogCapture() {
  absl::MutexLock lock(&g_mutex);
  previous_ = g_capture;
  g_capture = this;
}

LogCapture::~LogCapture() {
  absl::MutexLock lock(&g_mutex);
  g_capture = previous_;
}

void LogCapture::Add(std::string line) {
  absl::MutexLock lock(&mutex_);
  lines_.push_back(std::move(line));
}

std::vector<std::string> LogCapture::lines() const {
  absl::MutexLock lock(&mutex_);
  return lines_;
}

namespace {

using Json = nlohmann::ordered_json;

std::atomic<LogFormat> g_format{LogFormat::kJson};

bool IsPlain(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("._-+:/[]", c)) {
      return false;
    }
  }
  return !text.empty();
}

struct Shown {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& text) const {
    return IsPlain(text) ? text
                         : absl::StrCat("\"", absl::CHexEscape(text), "\"");
  }
  template <typename Number>
  std::string operator()(Number value) const {
    return absl::StrCat(value);
  }
};

}  // namespace

LogValue::LogValue(const char* text) : value_(std::string(text)) {}
LogValue::LogValue(std::string text) : value_(std::move(text)) {}
LogValue::LogValue(absl::string_view text) : value_(std::string(text)) {}
LogValue::LogValue(const LogValue&) = default;
LogValue::LogValue(LogValue&&) noexcept = default;
LogValue& LogValue::operator=(const LogValue&) = default;
LogValue& LogValue::operator=(LogValue&&) noexcept = default;
LogValue::~LogValue() = default;

absl::string_view LogSeverityName(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::kDebug:
      return "DEBUG";
    case LogSeverity::kInfo:
      return "INFO";
    case LogSeverity::kWarning:
      return "WARNING";
    case LogSeverity::kError:
      return "ERROR";
  }
  return "ERROR";
}

absl::StatusOr<LogSeverity> ParseLogSeverity(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  for (const LogSeverity severity :
       {LogSeverity::kDebug, LogSeverity::kInfo, LogSeverity::kWarning,
        LogSeverity::kError}) {
    if (upper == LogSeverityName(severity)) return severity;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "log level \"", name, "\" is not one of debug, info, warning, error"));
}

std::string FormatLogLine(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields) {
  Json json_fields = Json::object();
  for (const auto& [name, value] : fields) {
    Json& json = json_fields[name];
    std::visit([&json](const auto& plain) { json = plain; }, value.value());
  }
  const Json line = {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time,
                                               absl::UTCTimeZone())},
                     {"severity", std::string(LogSeverityName(severity))},
                     {"event", std::string(event)},
                     {"fields", std::move(json_fields)}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void SetLogFormat(LogFormat format) {
  g_format.store(format, std::memory_order_relaxed);
}

std::string FormatLogText(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields) {
  std::string line =
      absl::StrCat(absl::FormatTime("%H:%M:%E3S", time, absl::LocalTimeZone()),
                   " ", LogSeverityName(severity), " ", event);
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&line, " ", name, "=", std::visit(Shown(), value.value()));
  }
  return line;
}

std::string FormatLog(absl::Time time, LogSeverity severity,
                      absl::string_view event, const LogFields& fields) {
  return g_format.load(std::memory_order_relaxed) == LogFormat::kText
             ? FormatLogText(time, severity, event, fields)
             : FormatLogLine(time, severity, event, fields);
}

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
