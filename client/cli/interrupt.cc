#include "client/cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace txl::cli {
namespace {

int interrupt_fd = -1;

void Notify(int fd) {
  const uint64_t one = 1;
  const ssize_t written = write(fd, &one, sizeof(one));
  (void)written;  // a full counter is readable too
}

// Only what is safe in a handler: one write, errno kept.
void OnSignal(int /*signal*/) {
  const int saved = errno;
  Notify(interrupt_fd);
  errno = saved;
}

int Install() {
  interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  return interrupt_fd;
}

}  // namespace

int InterruptFd() {
  static const int fd = Install();
  return fd;
}

bool TakeInterrupt() {
  uint64_t count = 0;
  return read(InterruptFd(), &count, sizeof(count)) == sizeof(count);
}

CancelOnInterrupt::CancelOnInterrupt(Canceller* canceller)
    : stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  const int interrupt = InterruptFd();
  thread_ = std::thread([this, canceller, interrupt] {
    pollfd fds[] = {{interrupt, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    if (!TakeInterrupt()) return;
    interrupted_ = true;
    canceller->Cancel();
  });
}

CancelOnInterrupt::~CancelOnInterrupt() {
  Notify(stop_fd_);
  thread_.join();
  close(stop_fd_);
}

}  // namespace txl::cli
