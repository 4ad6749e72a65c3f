#include "server/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

// Owner only: who may lock it may keep a server from starting.
constexpr mode_t kMode = 0600;

// Whether somebody listens: one who does not accept does as well.
bool IsListenedOn(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return false;
  path.copy(name.sun_path, path.size());
  const int fd =
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const auto cleanup = absl::MakeCleanup([fd] { ::close(fd); });
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&name),
                   sizeof(name)) == 0 ||
         errno == EAGAIN;
}

absl::Status CheckPath(const std::string& path) {
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0) return absl::OkStatus();
  if (!S_ISSOCK(there.st_mode)) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on unix:", path, ": it is no socket"));
  }
  if (IsListenedOn(path)) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on unix:", path, ": another program listens there"));
  }
  return absl::OkStatus();
}

}  // namespace

SocketClaim::~SocketClaim() {
  if (lock_ >= 0) ::close(lock_);
}

absl::StatusOr<SocketClaim> ClaimSocket(const std::string& listen) {
  absl::string_view view = listen;
  if (!absl::ConsumePrefix(&view, "unix:")) return SocketClaim();
  const std::string path(view);
  const std::string lock_path = path + ".lock";
  SocketClaim claim(
      ::open(lock_path.c_str(),
             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode));
  if (claim.lock_ < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", listen, ": ", lock_path, ": ", strerror(errno)));
  }
  if (::flock(claim.lock_, LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(
        errno == EWOULDBLOCK
            ? absl::StrCat("cannot listen on ", listen,
                           ": another server does (it has locked ", lock_path,
                           ")")
            : absl::StrCat("cannot lock ", lock_path, ": ", strerror(errno)));
  }
  TXL_RETURN_IF_ERROR(CheckPath(path));
  return claim;
}

absl::Status SetSocketMode(const std::string& listen, const std::string& mode) {
  absl::string_view path = listen;
  if (mode.empty() || !absl::ConsumePrefix(&path, "unix:")) {
    return absl::OkStatus();
  }
  const auto bits = static_cast<mode_t>(std::stoul(mode, nullptr, 8));
  if (::chmod(std::string(path).c_str(), bits) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("--socket-mode: ", path, ": ", strerror(errno)));
}

}  // namespace txl
