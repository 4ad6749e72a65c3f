#pragma once

// Structured log: one JSON object a line on standard error,
//   {"time":"2026-01-31T12:00:00.000000Z","severity":"INFO",
//    "event":"listening","fields":{"address":"127.0.0.1:50051"}}
// An event is a fixed name; all that varies is a field. Fields never carry
// prompts, tokens, session ids or secrets.

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

enum class LogSeverity { kDebug, kInfo, kWarning, kError };

// "DEBUG", "INFO", "WARNING", "ERROR".
absl::string_view LogSeverityName(LogSeverity severity);
// The name in any case; else InvalidArgument that lists the names.
absl::StatusOr<LogSeverity> ParseLogSeverity(absl::string_view name);

// A field's value: truth, a number or text.
class LogValue {
 public:
  using Variant = std::variant<bool, int64_t, uint64_t, double, std::string>;

  // Implicit, so that a call reads {{"tokens", 12}, {"reason", "DRAINING"}}.
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  LogValue(T value)  // NOLINT(google-explicit-constructor)
      : value_(Widen(value)) {}
  LogValue(const char* text);        // NOLINT(google-explicit-constructor)
  LogValue(std::string text);        // NOLINT(google-explicit-constructor)
  LogValue(absl::string_view text);  // NOLINT(google-explicit-constructor)

  // Not inline: inlined copies of a variant make GCC 12 warn in every caller.
  LogValue(const LogValue&);
  LogValue(LogValue&&) noexcept;
  LogValue& operator=(const LogValue&);
  LogValue& operator=(LogValue&&) noexcept;
  ~LogValue();

  const Variant& value() const { return value_; }

 private:
  template <typename T>
  static auto Widen(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      return static_cast<uint64_t>(value);
    } else {
      return static_cast<int64_t>(value);
    }
  }

  Variant value_;
};

using LogFields = std::vector<std::pair<std::string, LogValue>>;

// The line without its end. Bytes that are not UTF-8 become U+FFFD, control
// characters are escaped, numbers that are not finite become null: the line is
// always one JSON object.
std::string FormatLogLine(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields);

// Thread-safe; lines never mix. Below the level nothing happens. Never waits
// for whoever reads standard error: lines go through a bounded queue, and those
// that find no room are dropped and counted.
void Log(LogSeverity severity, absl::string_view event,
         const LogFields& fields = {});
// Lines that were lost because nobody read them in time. Thread-safe.
int64_t LogLinesDropped();
// A line for a person who starts the program, as it is, among the others.
void LogPlain(std::string line);
// Waits, `timeout` at most, until standard error has all lines.
void FlushLog(absl::Duration timeout);
// What a process that ends waits at most for the reader of its log.
inline constexpr absl::Duration kLastFlush = absl::Milliseconds(200);
// Lines below `severity` are dropped. At start: kInfo.
void SetLogLevel(LogSeverity severity);

// For tests: while one lives, lines go into it instead of standard error.
// The newest one alive gets them; destroy in reverse order. Thread-safe.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  std::vector<std::string> lines() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend void Log(LogSeverity, absl::string_view, const LogFields&);
  void Add(std::string line) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  LogCapture* previous_ = nullptr;
};

}  // namespace txl
