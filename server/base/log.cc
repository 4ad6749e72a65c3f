#include "server/base/log.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "absl/base/const_init.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/base/log_writer.h"

namespace txl {
namespace {

using Json = nlohmann::ordered_json;

std::atomic<LogSeverity> g_level{LogSeverity::kInfo};
ABSL_CONST_INIT absl::Mutex g_mutex(absl::kConstInit);
ABSL_CONST_INIT LogCapture* g_capture ABSL_GUARDED_BY(g_mutex) = nullptr;

std::string DroppedLine(int64_t lines) {
  return FormatLogLine(Clock::Real()->Now(), LogSeverity::kWarning,
                       "log_dropped", {{"lines", lines}});
}

// Lives until the process ends, whatever other threads still log then.
LogWriter& Writer() {
  static auto* const writer = new LogWriter({.dropped_line = &DroppedLine});
  return *writer;
}

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
      "log level \"", name, "\" is none of debug, info, warning, error"));
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

void Log(LogSeverity severity, absl::string_view event,
         const LogFields& fields) {
  if (severity < g_level.load(std::memory_order_relaxed)) return;
  std::string line =
      FormatLogLine(Clock::Real()->Now(), severity, event, fields);
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
