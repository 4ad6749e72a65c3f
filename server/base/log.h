#pragma once

// Structured log: one JSON object a line on standard error,
//   {"time":"2026-01-31T12:00:00.000000Z","severity":"INFO",
//    "event":"listening","fields":{"address":"127.0.0.1:50051"}}
// An event is a fixed name; all that varies is a field. Fields never carry
// prompts, tokens, session ids or secrets.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/log_format.h"

namespace txl {

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

}  // namespace txl
