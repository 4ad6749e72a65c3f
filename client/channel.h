#pragma once

// Where a server is and how to reach it.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace grpc {
class Channel;
}

namespace txl {

struct ChannelOptions {
  std::string address = "127.0.0.1:50051";  // HOST:PORT or unix:PATH
  bool tls = false;
  std::string ca_file = {};  // PEM roots for tls; empty: gRPC's default roots
  // PEM files of the client's own certificate, with those that signed it, and
  // of its key, where the server wants one; empty: none.
  std::string certificate_file = {};
  std::string tls_key_file = {};
  // File of the key that the server asks for, as `txl-server keys add` prints
  // it; white space around it is left out. Empty: none is sent.
  std::string key_file = {};
  // True: a connection of its own, instead of sharing one with every other
  // channel of this process that has the same address and options.
  bool own_connection = false;
  // Nothing is retried, also not where gRPC would do so by itself, nothing is
  // counted, nothing is compressed: less work for each message.
  bool lean = false;
  // Bytes of a stream that may wait for their reader; 0: gRPC decides, by
  // pings that it sends with the reads.
  int32_t window_bytes = 0;
};

// Makes a channel; connects at the first call. Keepalive pings every 60 s.
// Errors: InvalidArgument for an address that is neither HOST:PORT nor
// unix:PATH (IPv6 in brackets), a PEM file without tls, a file that is not PEM,
// one of certificate and its key without the other, a key with a passphrase, or
// a key_file that holds no key; NotFound when a file cannot be read.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(
    const ChannelOptions& options);

// InvalidArgument as above; OK otherwise.
absl::Status ValidateAddress(const std::string& address);

}  // namespace txl
