#include "server/listen_address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr char kOff[] = "off";

bool IsWord(const std::string& listen, const char* word) {
  return absl::EqualsIgnoreCase(listen, word);
}

// A name or an address, perhaps with a port.
bool IsHost(absl::string_view host) {
  return !host.empty() && absl::c_all_of(host, [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("-._:[]", c) || c > 127;
  });
}

}  // namespace

std::string CheckHostPort(const std::string& listen) {
  const std::string wrong = absl::StrCat("\"", listen, "\" is not HOST:PORT");
  const absl::string_view address = listen;
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return wrong;
  const absl::string_view port_text = address.substr(colon + 1);
  int port = 0;
  if (port_text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port_text, &port) || port > 65535) {
    return wrong;
  }
  const absl::string_view host = address.substr(0, colon);
  const bool brackets =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (host.find_first_of(", \t") != absl::string_view::npos ||
      (!brackets && host.find_first_of(":[]") != absl::string_view::npos)) {
    return wrong;
  }
  return "";
}

std::string CheckListen(const std::string& listen) {
  if (absl::StartsWith(listen, "unix:")) {
    if (listen.size() == 5) return "unix: needs a path";
    constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
    if (listen.size() - 5 <= kMost) return "";
    return absl::StrCat("the path of a Unix socket has at most ", kMost,
                        " bytes");
  }
  if (!CheckHostPort(listen).empty()) {
    return absl::StrCat("\"", listen, "\" is neither HOST:PORT nor unix:PATH");
  }
  return "";
}

std::string CheckAdminListen(const std::string& listen) {
  if (listen.empty() || IsWord(listen, kOff) || IsWord(listen, kAdminAuto)) {
    return "";
  }
  return CheckListen(listen);
}

std::vector<std::string> ItemsOf(const std::string& list) {
  std::vector<std::string> items;
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    item = absl::StripAsciiWhitespace(item);
    if (!item.empty()) items.emplace_back(item);
  }
  return items;
}

std::string CheckHosts(const std::string& list) {
  for (const std::string& item : ItemsOf(list)) {
    if (!IsHost(item)) {
      return absl::StrCat("\"", item, "\" is not a host name or an address");
    }
  }
  return "";
}

std::string CheckOrigins(const std::string& list) {
  for (const std::string& item : ItemsOf(list)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits("://", 1));
    if (item == "null" || (!parts.first.empty() && IsHost(parts.second))) {
      continue;
    }
    return absl::StrCat("\"", item,
                        "\" is not an origin like https://chat.example");
  }
  return "";
}

std::string AdminAddress(const std::string& listen,
                         const std::string& data_dir) {
  if (IsWord(listen, kOff)) return "";
  if (!IsWord(listen, kAdminAuto)) return listen;
  return data_dir.empty() ? "" : absl::StrCat("unix:", data_dir, "/admin.sock");
}

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
        absl::StrCat("cannot listen on unix:", path, ": it is not a socket"));
  }
  if (IsListenedOn(path)) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on unix:", path, ": another program listens there"));
  }
  return absl::OkStatus();
}

}  // namespace

SocketLock::~SocketLock() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<SocketLock> LockSocket(const std::string& listen) {
  absl::string_view view = listen;
  if (!absl::ConsumePrefix(&view, "unix:")) return SocketLock();
  const std::string path(view);
  const std::string lock_path = path + ".lock";
  SocketLock lock(::open(lock_path.c_str(),
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                         kMode));
  if (lock.fd_ < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", listen, ": ", lock_path, ": ", strerror(errno)));
  }
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(
        errno == EWOULDBLOCK
            ? absl::StrCat("cannot listen on ", listen,
                           ": another server does (it has locked ", lock_path,
                           ")")
            : absl::StrCat("cannot lock ", lock_path, ": ", strerror(errno)));
  }
  TXL_RETURN_IF_ERROR(CheckPath(path));
  return lock;
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

absl::Status CheckAddressesDiffer(const std::vector<NamedAddress>& addresses) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto& [flag, listen] = addresses[i];
    if (listen.empty() || absl::EndsWith(listen, ":0")) continue;
    for (size_t other = 0; other < i; ++other) {
      if (addresses[other].listen != listen) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          flag, " ", listen, ": is the address of ", addresses[other].flag));
    }
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckListener(const char* flag, const std::string& listen,
                           const Exposure& exposure) {
  if (listen.empty() || IsOfThisMachine(listen) || exposure.insecure ||
      !exposure.tls.certificate.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", listen,
                   ": is beyond loopback and would have no TLS; give "
                   "--tls-cert and --tls-key, or --insecure"));
}

absl::Status CheckFiles(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(files.key.empty()
                                          ? "--tls-cert: needs --tls-key, too"
                                          : "--tls-key: needs --tls-cert, too");
  }
  if (!files.client_ca.empty() && files.certificate.empty()) {
    return absl::InvalidArgumentError(
        "--tls-client-ca: needs --tls-cert and --tls-key, too");
  }
  if (!files.revoked.empty() && files.client_ca.empty()) {
    return absl::InvalidArgumentError("--tls-crl: needs --tls-client-ca, too");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsOfThisMachine(const std::string& listen) {
  if (absl::StartsWith(listen, "unix:")) return true;
  const std::string host = listen.substr(0, listen.rfind(':'));
  in_addr v4 = {};
  // A name may begin with "127." too.
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  return host == "localhost" || host == "[::1]";
}

absl::Status CheckExposure(const Exposure& exposure) {
  TXL_RETURN_IF_ERROR(CheckFiles(exposure.tls));
  TXL_RETURN_IF_ERROR(CheckListener("--listen", exposure.listen, exposure));
  TXL_RETURN_IF_ERROR(
      CheckListener("--http-listen", exposure.http_listen, exposure));
  const std::string& admin = exposure.admin_listen;
  if (admin.empty() || IsOfThisMachine(admin)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--admin-listen ", admin,
                   ": is beyond loopback; administration is for this machine "
                   "alone"));
}

}  // namespace txl
