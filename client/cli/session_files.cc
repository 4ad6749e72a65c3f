#include "client/cli/session_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/output.h"

namespace txl::cli {
namespace {

constexpr char kStandard[] = "-";
constexpr size_t kReadBytes = 256 << 10;

absl::Status WriteAll(int file, absl::string_view bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// The file is on the disk before it takes its name.
absl::Status Complete(int file, const std::string& part,
                      const std::string& path) {
  if (fsync(file) != 0) return absl::ErrnoToStatus(errno, part);
  if (std::rename(part.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SaveSession(Client& client,
                         const v1::ExportSessionRequest& request,
                         const CallOptions& options, const std::string& path) {
  if (path == kStandard) {
    return client.ExportSession(request, options, [](absl::string_view bytes) {
      return WriteOut(bytes) ? absl::OkStatus() : OutputStatus();
    });
  }
  const std::string part = absl::StrCat(path, ".part");
  const int file =
      open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, part);
  const absl::Cleanup close_it = [file] { close(file); };
  absl::Status status = client.ExportSession(
      request, options,
      [&](absl::string_view bytes) { return WriteAll(file, bytes, part); });
  if (status.ok()) status = Complete(file, part, path);
  if (!status.ok()) unlink(part.c_str());
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
  if (!response.ok()) return response.status();
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
