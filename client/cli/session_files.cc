#include "client/cli/session_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/call_error.h"
#include "client/cli/output.h"
#include "program/output_file.h"

namespace txl::cli {
namespace {

constexpr char kStandard[] = "-";
constexpr size_t kReadBytes = 256 << 10;

}  // namespace

absl::Status SaveSession(Client& client,
                         const v1::ExportSessionRequest& request,
                         const CallOptions& options, const std::string& path) {
  if (path == kStandard) {
    return client.ExportSession(request, options, [](absl::string_view bytes) {
      return WriteOut(bytes) ? absl::OkStatus() : OutputStatus();
    });
  }
  // Only the user may read it: it holds the session's text.
  const auto file = OutputFile::Open(path, 0600);
  if (!file.ok()) return file.status();
  absl::Status status = client.ExportSession(
      request, options,
      [&](absl::string_view bytes) { return (*file)->Write(bytes); });
  if (status.ok()) status = (*file)->Finish();
  return status;
}

absl::StatusOr<v1::Session> LoadSession(Client& client,
                                        const v1::ImportSessionRequest& request,
                                        const CallOptions& options,
                                        const std::string& path) {
  const bool standard = path == kStandard;
  const int file =
      standard ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  const absl::Cleanup close_it = [file, standard] {
    if (!standard) close(file);
  };
  const auto next = [&]() -> absl::StatusOr<std::string> {
    std::string bytes(kReadBytes, '\0');
    ssize_t got = 0;
    do {
      got = read(file, bytes.data(), bytes.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  };
  absl::StatusOr<v1::ImportSessionResponse> response =
      client.ImportSession(request, options, next);
  // A session of that name is not the file's fault.
  if (absl::IsAlreadyExists(response.status())) return response.status();
  if (!response.ok()) {
    const std::string name = standard ? "standard input" : path;
    const bool named = absl::StrContains(response.status().message(), name);
    return named ? response.status() : About(name, response.status());
  }
  return std::move(*response->mutable_session());
}

namespace {

std::string FormatTime(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S",
                          absl::FromUnixSeconds(time.seconds()),
                          absl::LocalTimeZone());
}

}  // namespace

std::string FormatSession(const v1::Session& session) {
  return absl::StrFormat(
      "%-24s %-5s %10d %12d  %s  %s\n", session.session_id(),
      session.state() == v1::SESSION_STATE_BUSY ? "busy" : "idle",
      session.position(), session.memory_bytes(),
      FormatTime(session.last_use_time()), FormatTime(session.expire_time()));
}

}  // namespace txl::cli
