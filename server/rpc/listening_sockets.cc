#include "server/rpc/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr int kBacklog = 1024;            // the kernel's own limit may be lower
constexpr int kReceiveBytes = 128 << 10;  // Linux takes twice as much

absl::Status Failed(absl::string_view call, int error) {
  return absl::UnavailableError(absl::StrCat(call, ": ", strerror(error)));
}

void Set(int fd, int level, int option, int value) {
  (void)::setsockopt(fd, level, option, &value, sizeof(value));
}

// A socket that listens.
absl::StatusOr<int> Listen(const sockaddr* address, socklen_t length,
                           bool owner_only = false) {
  const int fd = ::socket(address->sa_family,
                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket", errno);
  if (address->sa_family != AF_UNIX) {
    Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    // Connections inherit it. gRPC may read all that waits here before a
    // connection is cut off: thousands of calls, if it were the system's
    // megabytes.
    Set(fd, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  }
  // "[::]" stands for the addresses of both protocols.
  if (address->sa_family == AF_INET6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Linux gives the file that bind makes the mode of the socket.
  const bool may_bind = !owner_only || ::fchmod(fd, S_IRUSR | S_IWUSR) == 0;
  if (may_bind && ::bind(fd, address, length) == 0 &&
      ::listen(fd, kBacklog) == 0) {
    return fd;
  }
  const absl::Status status = Failed("bind", errno);
  ::close(fd);
  return status;
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  (void)::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  const in_port_t port =
      address.ss_family == AF_INET6
          ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
          : reinterpret_cast<const sockaddr_in*>(&address)->sin_port;
  return ntohs(port);
}

void SetPort(sockaddr* address, int port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

}  // namespace

ListeningSockets& ListeningSockets::operator=(
    ListeningSockets&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(path_, other.path_);
  std::swap(sockets_, other.sockets_);
  return *this;
}

ListeningSockets::~ListeningSockets() {
  if (!path_.empty()) ::unlink(path_.c_str());
  for (const int fd : sockets_) ::close(fd);
}

absl::StatusOr<ListeningSockets> ListeningSockets::Open(
    const std::string& listen, bool owner_only) {
  ListeningSockets opened;
  absl::string_view path = listen;
  absl::Status status;
  if (absl::ConsumePrefix(&path, "unix:")) {
    status = opened.OpenUnix(std::string(path), owner_only);
    opened.address_ = listen;
  } else {
    const size_t colon = listen.rfind(':');
    if (colon == std::string::npos) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", listen, ": no port"));
    }
    const std::string host = listen.substr(0, colon);
    status = opened.OpenHost(host, listen.substr(colon + 1));
    if (status.ok()) {
      opened.address_ = absl::StrCat(host, ":", PortOf(opened.sockets_[0]));
    }
  }
  if (status.ok()) return opened;
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", listen, ": ", status.message()));
}

absl::Status ListeningSockets::OpenUnix(const std::string& path,
                                        bool owner_only) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) {
    return absl::UnavailableError("the path is too long");
  }
  path.copy(name.sun_path, path.size());
  ::unlink(path.c_str());
  TXL_ASSIGN_OR_RETURN(const int fd,
                       Listen(reinterpret_cast<const sockaddr*>(&name),
                              sizeof(name), owner_only));
  sockets_.push_back(fd);
  path_ = path;
  return absl::OkStatus();
}

absl::Status ListeningSockets::OpenHost(const std::string& host,
                                        const std::string& port) {
  std::string name = host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(name.empty() ? nullptr : name.c_str(),
                                   port.c_str(), &hints, &found);
  if (failed != 0) return absl::UnavailableError(gai_strerror(failed));
  const auto cleanup = absl::MakeCleanup([found] { ::freeaddrinfo(found); });
  absl::Status status = absl::UnavailableError("no address");
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (!sockets_.empty()) SetPort(one->ai_addr, PortOf(sockets_[0]));
    const absl::StatusOr<int> fd = Listen(one->ai_addr, one->ai_addrlen);
    if (fd.ok()) {
      sockets_.push_back(*fd);
    } else {
      status = fd.status();
    }
  }
  return sockets_.empty() ? status : absl::OkStatus();
}

}  // namespace txl
