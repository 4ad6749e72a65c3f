#pragma once

// The right to listen on a Unix socket's path. gRPC replaces whatever socket is
// there and removes it when it stops, its own or another server's.

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace txl {

// Held while the server listens and until gRPC has stopped; the kernel lets go
// of it when the process ends, however it ends. Move-only.
class SocketClaim {
 public:
  SocketClaim() = default;
  SocketClaim(SocketClaim&& other) noexcept
      : lock_(std::exchange(other.lock_, -1)) {}
  SocketClaim& operator=(SocketClaim&& other) noexcept {
    std::swap(lock_, other.lock_);
    return *this;
  }
  ~SocketClaim();

 private:
  friend absl::StatusOr<SocketClaim> ClaimSocket(const std::string& listen);
  explicit SocketClaim(int lock) : lock_(lock) {}

  int lock_ = -1;  // file descriptor
};

// For "unix:PATH", a lock on the file PATH.lock, which stays; for any other
// address nothing. A socket that nobody listens on, which a server that was
// killed leaves, is no hindrance. Errors, Unavailable, name the path: another
// server has it, another program listens on it, or it is no socket.
absl::StatusOr<SocketClaim> ClaimSocket(const std::string& listen);

// Gives the socket of "unix:PATH", which is there, these octal permissions;
// does nothing for any other address or an empty mode. Errors: Unavailable.
absl::Status SetSocketMode(const std::string& listen, const std::string& mode);

}  // namespace txl
