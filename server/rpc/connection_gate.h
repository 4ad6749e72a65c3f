#pragma once

// Accepts connections and gives them to gRPC, as many as there may be. gRPC's
// own listener has no limit, and it stops permanently once it finds no free
// file descriptor (CVE-2023-4785).

#include <grpcpp/server_builder.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/api/limits.h"
#include "server/metrics/server_status.h"
#include "server/rpc/listening_sockets.h"

namespace txl {

// Connections that may be open where the process may have `files` open files:
// some are left for everything else.
int64_t ConnectionLimit(int64_t connections, int64_t files);

// Thread-safe.
class ConnectionGate {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // Clients may connect from now on; they are served from Start on.
  // `owner_only`: see ListeningSockets.
  static absl::StatusOr<std::unique_ptr<ConnectionGate>> Listen(
      const std::string& listen, const CallLimits& limits,
      bool owner_only = false);
  ~ConnectionGate() { Stop(); }

  const std::string& address() const { return sockets_.address(); }

  // The acceptor's server has been started.
  void Start(std::unique_ptr<Acceptor> acceptor);
  // No client can connect any more; open connections stay. Before the
  // acceptor's server is shut down.
  void Stop();

  // Ends the connection of a peer as gRPC names it ("ipv4:127.0.0.1:4711"):
  // what it has sent and gRPC has not read is never read. Those of Unix sockets
  // have no names of their own: nothing.
  void CutOff(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);

  ConnectionCounts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A connection, which is gRPC's, as far as we know it.
  struct Connection {
    uint64_t socket;   // its inode: a descriptor's number is used again
    std::string host;  // of the client; empty for Unix sockets
    std::string peer;  // as gRPC names it; empty for Unix sockets
  };

  ConnectionGate(ListeningSockets sockets, const CallLimits& limits, int stop);
  void Loop();
  // False: no more now.
  bool Accept(int listener);
  bool Admit(int fd, const Connection& connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets connections that gRPC has closed.
  void Prune() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoomFor(const std::string& host) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ListeningSockets sockets_;
  const CallLimits limits_;
  const int stop_;  // an eventfd
  std::unique_ptr<Acceptor> acceptor_;
  mutable absl::Mutex mutex_;
  mutable std::map<int, Connection> open_ ABSL_GUARDED_BY(mutex_);
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace txl
