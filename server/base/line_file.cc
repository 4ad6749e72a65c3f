#include "server/base/line_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/base/log.h"

namespace txl {
namespace {

absl::StatusOr<int> OpenForLines(const LineFileOptions& options) {
  // A pipe that nobody reads is an error, not a wait.
  const int fd = ::open(
      options.path.c_str(),
      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (fd >= 0) return fd;
  return absl::ErrnoToStatus(
      errno, absl::StrCat("--", options.setting, ": ", options.path));
}

void SayLosing(const LineFileOptions& file, int error) {
  Log(LogSeverity::kWarning, "lines_lost",
      {{"setting", file.setting},
       {"file", file.path},
       {"error", error == 0 ? "they come faster than they are written"
                            : std::strerror(error)}});
}

// The line of the file itself; empty: none.
std::string SayFlowing(const LineFileOptions& file, int64_t lines) {
  const LogFields fields = {
      {"setting", file.setting}, {"file", file.path}, {"lines", lines}};
  Log(LogSeverity::kWarning, "lines_flow", fields);
  return file.notes_losses
             ? FormatLogLine(Clock::Real()->Now(), LogSeverity::kWarning,
                             "lines_flow", fields)
             : "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Open(
    LineFileOptions options) {
  const absl::StatusOr<int> fd = OpenForLines(options);
  if (!fd.ok()) return fd.status();
  return std::unique_ptr<LineFile>(new LineFile(std::move(options), *fd));
}

LineFile::LineFile(LineFileOptions options, int fd)
    : options_(std::move(options)) {
  LogWriterOptions writer;
  writer.fd = fd;
  writer.closes_fd = true;
  // Copies: the writer may outlive the file.
  writer.losing = [file = options_](int error) { SayLosing(file, error); };
  writer.dropped_line = [file = options_](int64_t lines) {
    return SayFlowing(file, lines);
  };
  writer_ = std::make_unique<LogWriter>(std::move(writer));
}

LineFile::~LineFile() {
  // A disk that stands still does not hold up the end of the process, too.
  if (!writer_->Flush(kLastFlush)) writer_.release();
}

void LineFile::Add(std::string line) { writer_->Add(std::move(line)); }

absl::Status LineFile::Reopen() {
  const absl::StatusOr<int> fd = OpenForLines(options_);
  if (fd.ok()) {
    writer_->SwitchTo(*fd);
    return absl::OkStatus();
  }
  Log(LogSeverity::kWarning, "file_kept",
      {{"setting", options_.setting},
       {"file", options_.path},
       {"error", fd.status().message()}});
  return fd.status();
}

void AddEvent(LineFile* file, LogSeverity severity, absl::string_view event,
              const LogFields& fields) {
  if (file == nullptr) return;
  file->Add(FormatLogLine(Clock::Real()->Now(), severity, event, fields));
}

void LogAndAudit(LineFile* audit, LogSeverity severity, absl::string_view event,
                 const LogFields& fields) {
  Log(severity, event, fields);
  AddEvent(audit, severity, event, fields);
}

}  // namespace txl
