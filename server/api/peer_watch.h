#pragma once

// Connections that do what no client does that keeps to HTTP/2: they reset
// calls by the hundred, or open more at a time than they may. gRPC 1.51 counts
// the streams of a connection only once the client has acknowledged its
// settings, so a client that does not is bounded here.

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

// Calls that a connection may reset in a second before their messages came.
inline constexpr int kMostResets = 500;
// Calls that a connection may have beyond its limit: of a client that has not
// heard of the limit yet, and ended ones that gRPC is not done with.
inline constexpr int64_t kSurplusCalls = 100;

// A peer is a connection as gRPC names it ("ipv4:127.0.0.1:4711"). Connections
// of Unix sockets share one name: they are not told apart, and not watched.
// Thread-safe.
class PeerWatch {
 public:
  // `streams`: calls at a time that a connection is told to keep to.
  explicit PeerWatch(int64_t streams) : most_open_(streams + kSurplusCalls) {}

  // A call of the peer is there; Closed is due. True: the connection has just
  // gone beyond what it may and is to be cut off.
  bool Opened(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Closed(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  // A peer has ended a call before its message was there, at a monotonic time.
  // True as above: a reset costs the peer far less than it costs the server.
  bool Reset(const std::string& peer, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int64_t most_open_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, int64_t> open_ ABSL_GUARDED_BY(mutex_);
  // Resets of this second.
  absl::Duration resets_since_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> resets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
