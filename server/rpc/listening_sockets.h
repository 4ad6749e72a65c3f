#pragma once

// Sockets that listen on an address of the flags.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace txl {

// Closes its sockets and removes a Unix socket's file. Move-only.
class ListeningSockets {
 public:
  // "HOST:PORT" (an IPv6 host in brackets; port 0: any free one) or
  // "unix:PATH", where a socket file that is there is replaced. Every address
  // that a host stands for is listened on. `owner_only`: only the process's
  // user may connect to a Unix socket (mode 0600), from its first moment on;
  // else the umask decides. Errors: Unavailable.
  static absl::StatusOr<ListeningSockets> Open(const std::string& listen,
                                               bool owner_only = false);

  ListeningSockets() = default;
  ListeningSockets(ListeningSockets&& other) noexcept {
    *this = std::move(other);
  }
  ListeningSockets& operator=(ListeningSockets&& other) noexcept;
  ~ListeningSockets();

  // The address with the real port.
  const std::string& address() const { return address_; }
  // They do not block.
  const std::vector<int>& sockets() const { return sockets_; }

 private:
  absl::Status OpenUnix(const std::string& path, bool owner_only);
  absl::Status OpenHost(const std::string& host, const std::string& port);

  std::string address_;
  std::string path_;  // of a Unix socket; empty: none
  std::vector<int> sockets_;
};

}  // namespace txl
