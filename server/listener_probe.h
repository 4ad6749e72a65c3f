#pragma once

// A client's first bytes to a listener of HTTP/2 or TLS, and whether it
// answers.

#include <sys/socket.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace txl {

class ListenerProbe {
 public:
  // "HOST:PORT", with `tls` or without, or "unix:PATH", always without; of a
  // host's addresses the first that answers within `timeout`. Unavailable: none
  // does.
  static absl::StatusOr<ListenerProbe> Create(const std::string& address,
                                              absl::Duration timeout,
                                              bool tls = false);

  // Connects, says hello and waits for a byte or the connection's end. Where
  // the kernel alone takes connections, which nobody then accepts, no byte
  // comes. Unavailable says what failed. Thread-safe.
  absl::Status Try(absl::Duration timeout) const;

 private:
  ListenerProbe() = default;

  sockaddr_storage address_ = {};
  socklen_t length_ = 0;
  std::string hello_;
};

}  // namespace txl
