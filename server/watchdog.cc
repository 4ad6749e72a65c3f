#include "server/watchdog.h"

#include <netdb.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/signals.h"
#include "server/tls/peer_certificate.h"

namespace txl {

bool ShouldServe(ServerPhase phase, absl::Duration stall,
                 absl::Duration stall_limit) {
  return phase == ServerPhase::kReady && stall < stall_limit;
}

int HangCount(int before, absl::Duration stall, absl::Duration hang_limit) {
  const bool hangs = hang_limit > absl::ZeroDuration() && stall >= hang_limit;
  return hangs ? before + 1 : 0;
}

HealthWatch::HealthWatch(HealthWatchOptions options)
    : options_(std::move(options)),
      thread_(options_.interval, [this] { Check(); }) {}

void HealthWatch::Check() {
  const absl::Duration stall = options_.stall();
  hang_checks_ = HangCount(hang_checks_, stall, options_.hang_limit);
  if (hang_checks_ == kHangChecks) options_.hung(stall);
  const bool silent = options_.store_silent && options_.store_silent();
  const bool serve =
      ShouldServe(options_.phase(), stall, options_.stall_limit) && !silent;
  if (serve == serving_) return;
  serving_ = serve;
  options_.set_serving(serve);
  Log(serve ? LogSeverity::kInfo : LogSeverity::kWarning, "health",
      {{"serving", serve},
       {"stall_seconds", absl::ToDoubleSeconds(stall)},
       {"store_silent", silent}});
}

void GiveUp(absl::string_view cause, absl::string_view details, ExitCode code) {
  Log(LogSeverity::kError, "exit",
      {{"forced", true}, {"cause", cause}, {"details", details}});
  FlushLog(kLastFlush);
  _exit(code);
}

void ExitAfter(absl::Duration timeout) {
  std::thread([timeout] {
    absl::SleepFor(timeout);
    Log(LogSeverity::kWarning, "exit", {{"forced", true}});
    FlushLog(kLastFlush);
    _exit(kExitForced);
  }).detach();
}

namespace {

constexpr int kLeastFailures = 3;

}  // namespace

FailedAttempts WithAttempt(const FailedAttempts& before, bool ok,
                           absl::Duration began) {
  if (ok) return {};
  return {before.count + 1, before.count == 0 ? began : before.since};
}

bool IsDeaf(const FailedAttempts& failed, absl::Duration now,
            absl::Duration limit) {
  return failed.count >= kLeastFailures && now - failed.since >= limit;
}

ListenerWatch::ListenerWatch(ListenerWatchOptions options)
    : options_(std::move(options)),
      thread_(options_.interval, [this] { Attempt(); }) {}

void ListenerWatch::Attempt() {
  const absl::Duration began = options_.clock->Monotonic();
  const absl::Status status = options_.attempt();
  failed_ = WithAttempt(failed_, status.ok(), began);
  if (IsDeaf(failed_, options_.clock->Monotonic(), options_.limit)) {
    options_.deaf(status);
  }
}

namespace {

// RFC 9113, 3.4: the connection preface and an empty SETTINGS frame.
constexpr char kHello[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

absl::Status Failed(absl::string_view call, int error) {
  return absl::UnavailableError(absl::StrCat(call, ": ", strerror(error)));
}

// Waits for `events` until the end, a time of the monotonic clock.
absl::Status Await(int fd, short events, absl::Duration end) {
  while (true) {
    const absl::Duration left = end - Clock::Real()->Monotonic();
    pollfd ready = {fd, events, 0};
    const int count = ::poll(&ready, 1,
                             static_cast<int>(std::max<int64_t>(
                                 0, absl::ToInt64Milliseconds(left))));
    if (count > 0) return absl::OkStatus();
    if (count == 0) return absl::UnavailableError("no answer");
    if (errno != EINTR) return Failed("poll", errno);
  }
}

absl::Status Connect(int fd, const sockaddr* address, socklen_t length,
                     absl::Duration end) {
  if (::connect(fd, address, length) == 0) return absl::OkStatus();
  // A Unix socket whose queue is full says EAGAIN.
  if (errno != EINPROGRESS) return Failed("connect", errno);
  TXL_RETURN_IF_ERROR(Await(fd, POLLOUT, end));
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? absl::OkStatus() : Failed("connect", error);
}

}  // namespace

absl::StatusOr<ListenerProbe> ListenerProbe::Create(const std::string& address,
                                                    absl::Duration timeout,
                                                    bool tls) {
  ListenerProbe probe;
  probe.hello_.assign(kHello, sizeof(kHello) - 1);
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    auto* name = reinterpret_cast<sockaddr_un*>(&probe.address_);
    name->sun_family = AF_UNIX;
    if (path.size() >= sizeof(name->sun_path)) {
      return absl::UnavailableError("the path is too long");
    }
    path.copy(name->sun_path, path.size());
    probe.length_ = sizeof(*name);
    TXL_RETURN_IF_ERROR(probe.Try(timeout));
    return probe;
  }
  if (tls) probe.hello_ = ClientHello();
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(
      host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (failed != 0) return absl::UnavailableError(gai_strerror(failed));
  const auto cleanup = absl::MakeCleanup([found] { ::freeaddrinfo(found); });
  absl::Status status;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::memcpy(&probe.address_, one->ai_addr, one->ai_addrlen);
    probe.length_ = one->ai_addrlen;
    status = probe.Try(timeout);
    if (status.ok()) return probe;
  }
  return status;
}

absl::Status ListenerProbe::Try(absl::Duration timeout) const {
  const absl::Duration end = Clock::Real()->Monotonic() + timeout;
  const int fd = ::socket(address_.ss_family,
                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket", errno);
  const auto cleanup = absl::MakeCleanup([fd] { ::close(fd); });
  TXL_RETURN_IF_ERROR(
      Connect(fd, reinterpret_cast<const sockaddr*>(&address_), length_, end));
  // A new connection has room for so little. Whether it arrives shows below.
  ::send(fd, hello_.data(), hello_.size(), MSG_NOSIGNAL);
  // Whoever ends the connection at once is there too.
  return Await(fd, POLLIN, end);
}

}  // namespace txl
