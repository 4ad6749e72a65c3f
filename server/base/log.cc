#include "server/base/log.h"

#include <atomic>

#include "absl/base/const_init.h"
#include "server/base/clock.h"
#include "server/base/log_writer.h"

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

}  // namespace txl
