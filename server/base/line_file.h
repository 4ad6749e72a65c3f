#pragma once

// A file to which lines are appended and that can be taken away from under it,
// as logrotate does. A disk that is full or slow costs lines, never a caller's
// time.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/log.h"

namespace txl {

struct LineFileOptions {
  std::string setting;  // by which the path was given, "audit-log"
  std::string path;
  // Where lines were lost the file says so itself, as soon as it can.
  bool notes_losses = false;
};

// Thread-safe. The log says when lines begin to be lost, and how many were when
// they flow again (`lines_lost`, `lines_flow`).
class LineFile {
 public:
  // Opens the file for appending; one that is not there is made with the mode
  // 0600. Errors name setting and path.
  static absl::StatusOr<std::unique_ptr<LineFile>> Open(
      LineFileOptions options);
  // Waits a little for what is not written yet.
  ~LineFile();

  // A line without its end. Never waits.
  void Add(std::string line);
  // Opens the path again. If that fails, the old file stays open, and the log
  // has a warning, too.
  absl::Status Reopen();
  // Lines that were not written, and will not be.
  int64_t lost() const { return writer_->dropped(); }
  const LineFileOptions& options() const { return options_; }

 private:
  LineFile(LineFileOptions options, int fd);

  const LineFileOptions options_;
  std::unique_ptr<LogWriter> writer_;
};

// The line of an event, as the log has it, always as JSON. `file` null: none.
void AddEvent(LineFile* file, LogSeverity severity, absl::string_view event,
              const LogFields& fields);

// To the log and, where there is one, to the audit log: what is done to the
// server.
void LogAndAudit(LineFile* audit, LogSeverity severity, absl::string_view event,
                 const LogFields& fields);

}  // namespace txl
