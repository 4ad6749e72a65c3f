#pragma once

// Addresses that the flags listen on.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/tls/tls_credentials.h"

namespace txl {

// The default of --admin-listen: the socket admin.sock in --data-dir where
// there is one, else "off".
inline constexpr char kAdminAuto[] = "auto";

// "" for HOST:PORT, where port 0 is any free one and an IPv6 host stands in
// brackets; else what is wrong.
std::string CheckHostPort(const std::string& listen);
// "HOST:PORT", of IPv6 in brackets, or "unix:PATH"; else what is wrong.
std::string CheckListen(const std::string& listen);
// These, "auto", "off" (in any case) or nothing; else what is wrong.
std::string CheckAdminListen(const std::string& listen);

// The items of a list with commas between them.
std::vector<std::string> ItemsOf(const std::string& list);
// "", or what is wrong with an item of such a list: of host names and
// addresses, or of origins like "https://chat.example" and "null".
std::string CheckHosts(const std::string& list);
std::string CheckOrigins(const std::string& list);

// Where administration listens by --admin-listen and --data-dir; empty:
// nowhere.
std::string AdminAddress(const std::string& listen,
                         const std::string& data_dir);

// The right to listen on a Unix socket's path. gRPC replaces whatever socket is
// there and removes it when it stops, its own or another server's. Held while
// the server listens and until gRPC has stopped; the kernel lets go of it when
// the process ends, however it ends. Move-only.
class SocketLock {
 public:
  SocketLock() = default;
  SocketLock(SocketLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  SocketLock& operator=(SocketLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~SocketLock();

 private:
  friend absl::StatusOr<SocketLock> LockSocket(const std::string& listen);
  explicit SocketLock(int fd) : fd_(fd) {}

  int fd_ = -1;  // of the lock file
};

// For "unix:PATH", a lock on the file PATH.lock, which stays; for any other
// address nothing. A socket that no process listens on, which a killed server
// leaves behind, is not an error. Errors, Unavailable, name the path: another
// server has it, another program listens on it, or it is not a socket.
absl::StatusOr<SocketLock> LockSocket(const std::string& listen);

// Gives the socket of "unix:PATH", which is there, these octal permissions;
// does nothing for any other address or an empty mode. Errors: Unavailable.
absl::Status SetSocketMode(const std::string& listen, const std::string& mode);

struct NamedAddress {
  const char* flag = nullptr;
  std::string listen;  // empty: nowhere
};
// InvalidArgument, naming both flags: they would listen on the same address.
// Port 0 is another one each time.
absl::Status CheckAddressesDiffer(const std::vector<NamedAddress>& addresses);

// Whether what the flags say may be reached from other machines.

// Whether only this machine can reach "HOST:PORT" or "unix:PATH". False for
// names except "localhost": they may mean any address.
bool IsOfThisMachine(const std::string& listen);

// The flags that it depends on; addresses as above, but for the first they may
// be empty.
struct Exposure {
  std::string listen;
  std::string http_listen;
  TlsFiles tls;
  bool insecure = false;
  std::string admin_listen = {};
};

// InvalidArgument, naming the flag: gRPC or HTTP would listen beyond this
// machine with neither TLS nor --insecure, or a file of TLS is named without
// the others that it needs; or administration would listen beyond this machine
// at all.
absl::Status CheckExposure(const Exposure& exposure);

}  // namespace txl
