#include "server/rpc/connection_gate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace txl {
namespace {

// When no file descriptor or no memory is left, connections wait in the
// kernel's queue for so long.
constexpr int kPauseMs = 50;
// Files beside connections: the model, sockets that listen, epoll, scrapes.
constexpr int64_t kOtherFiles = 64;
constexpr int kOpenFilesUnknown = 1024;

int64_t OpenFiles() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kOpenFilesUnknown;
  return static_cast<int64_t>(
      std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int>::max()));
}

uint64_t SocketOf(int fd) {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino
                                                               : 0;
}

// Ends a TCP connection at once, for gRPC too, which closes it. Unlike shutdown
// it throws away what the client has sent and gRPC has not read yet: gRPC would
// read on to the end of it.
void Disconnect(int fd, uint64_t socket) {
  // gRPC may close it at any time, and its number be another client's: a copy
  // stays what it was when it was looked at.
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  const int own = copy < 0 ? fd : copy;  // no descriptor is left
  if (SocketOf(own) == socket) {
    sockaddr nobody = {};
    nobody.sa_family = AF_UNSPEC;
    if (::connect(own, &nobody, sizeof(nobody)) != 0) {
      ::shutdown(own, SHUT_RDWR);
    }
  }
  if (copy >= 0) ::close(copy);
}

std::string HostOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET,
                &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr, text,
                sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6,
                &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr,
                text, sizeof(text));
  }
  return text;
}

std::string PeerOf(const sockaddr_storage& address) {
  const std::string host = HostOf(address);
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    return absl::StrCat("ipv4:", host, ":", ntohs(v4->sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  absl::string_view plain = host;
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    absl::ConsumePrefix(&plain, "::ffff:");
    return absl::StrCat("ipv4:", plain, ":", ntohs(v6->sin6_port));
  }
  return absl::StrCat("ipv6:%5B", host, "%5D:", ntohs(v6->sin6_port));
}

}  // namespace

int64_t ConnectionLimit(int64_t connections, int64_t files) {
  return std::clamp<int64_t>(files - kOtherFiles, 1, connections);
}

absl::StatusOr<std::unique_ptr<ConnectionGate>> ConnectionGate::Listen(
    const std::string& listen, const CallLimits& limits, bool owner_only) {
  absl::StatusOr<ListeningSockets> sockets =
      ListeningSockets::Open(listen, owner_only);
  if (!sockets.ok()) return sockets.status();
  const int stop = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop < 0) return absl::UnavailableError("no file descriptor is left");
  CallLimits fitting = limits;
  fitting.connections = ConnectionLimit(limits.connections, OpenFiles());
  return std::unique_ptr<ConnectionGate>(
      new ConnectionGate(*std::move(sockets), fitting, stop));
}

ConnectionGate::ConnectionGate(ListeningSockets sockets,
                               const CallLimits& limits, int stop)
    : sockets_(std::move(sockets)), limits_(limits), stop_(stop) {}

void ConnectionGate::Start(std::unique_ptr<Acceptor> acceptor) {
  acceptor_ = std::move(acceptor);
  thread_ = std::thread([this] { Loop(); });
}

void ConnectionGate::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof(one));
    thread_.join();
    ::close(stop_);
  }
  const ListeningSockets closed = std::move(sockets_);
}

void ConnectionGate::Loop() {
  std::vector<pollfd> waits = {{stop_, POLLIN, 0}};
  for (const int fd : sockets_.sockets()) waits.push_back({fd, POLLIN, 0});
  while (true) {
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;  // a signal
    if (waits[0].revents != 0) return;
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents == 0) continue;
      // One at a time, so that no address waits behind another.
      if (!Accept(waits[i].fd)) ::poll(waits.data(), 1, kPauseMs);
    }
  }
}

bool ConnectionGate::Accept(int listener) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  const int fd = ::accept4(listener, reinterpret_cast<sockaddr*>(&address),
                           &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
           errno != ENOMEM;
  }
  if (!Admit(fd, {SocketOf(fd), HostOf(address), PeerOf(address)})) {
    ::close(fd);
    return true;
  }
  if (address.ss_family != AF_UNIX) {
    const int on = 1;
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
  return true;
}

void ConnectionGate::CutOff(const std::string& peer) {
  if (peer.empty()) return;
  absl::MutexLock lock(&mutex_);
  for (const auto& [fd, connection] : open_) {
    if (connection.peer == peer) Disconnect(fd, connection.socket);
  }
}

bool ConnectionGate::Admit(int fd, const Connection& connection) {
  const std::string& host = connection.host;
  absl::MutexLock lock(&mutex_);
  open_.erase(fd);  // its number is new: what had it is closed
  if (!HasRoomFor(host)) {
    Prune();
    if (!HasRoomFor(host)) {
      ++refused_;
      return false;
    }
  }
  open_[fd] = connection;
  return true;
}

bool ConnectionGate::HasRoomFor(const std::string& host) const {
  if (static_cast<int64_t>(open_.size()) >= limits_.connections) return false;
  if (limits_.connections_per_host == 0 || host.empty()) return true;
  return std::count_if(open_.begin(), open_.end(), [&](const auto& one) {
           return one.second.host == host;
         }) < limits_.connections_per_host;
}

void ConnectionGate::Prune() const {
  std::erase_if(open_, [](const auto& one) {
    return SocketOf(one.first) != one.second.socket;
  });
}

ConnectionCounts ConnectionGate::counts() const {
  absl::MutexLock lock(&mutex_);
  Prune();
  ConnectionCounts counts;
  counts.open = static_cast<int64_t>(open_.size());
  counts.limit = limits_.connections;
  counts.refused = refused_;
  return counts;
}

}  // namespace txl
