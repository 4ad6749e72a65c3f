#pragma once

// Structured log: one JSON object a line on standard error,
//   {"time":"2026-01-31T12:00:00.000000Z","severity":"INFO",
//    "event":"listening","fields":{"address":"127.0.0.1:50051"}}
// An event is a fixed name; all that varies is a field. Fields never carry
// prompts, tokens, session ids or secrets.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
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

// What a log line says and how it is written: as JSON for programs, or as text
// for people at a terminal.

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

// The line without its end:
//   12:00:00.000 WARNING turn_failed reason=STEP_FAILED rows=3
// The time is local; text with anything but letters, digits and plain signs is
// quoted and escaped: the line is always one line of printable ASCII.
std::string FormatLogText(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields);

enum class LogFormat { kJson, kText };

// Lines from now on have this format. At start: kJson. Thread-safe.
void SetLogFormat(LogFormat format);
// The line in the format that was set.
std::string FormatLog(absl::Time time, LogSeverity severity,
                      absl::string_view event, const LogFields& fields);

// Thread-safe; lines never mix. Below the level nothing happens. Never waits
// for the reader of standard error: lines go through a bounded queue, and those
// that find no room are dropped and counted.
void Log(LogSeverity severity, absl::string_view event,
         const LogFields& fields = {});
// Lines that were lost because they were not read in time. Thread-safe.
int64_t LogLinesDropped();
// A line for a person who starts the program, as it is, among the others.
void LogPlain(std::string line);
// Waits, `timeout` at most, until standard error has all lines.
void FlushLog(absl::Duration timeout);
// What a process that ends waits at most for the reader of its log.
inline constexpr absl::Duration kLastFlush = absl::Milliseconds(200);
// Lines below `severity` are dropped. At start: kInfo.
void SetLogLevel(LogSeverity severity);
LogSeverity LogLevel();

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

// Lines on their way to a file descriptor: a bounded queue and a thread of its
// own, so that a reader that stands still holds up only that thread.

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
