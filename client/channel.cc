#include "client/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstdint>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace txl {
namespace {

constexpr int kKeepaliveMs = 60'000;
// gRPC's own second and two minutes are long for a person who waits.
constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 5'000;
// A scored chunk with alternatives for each token is larger than gRPC's 4 MiB.
constexpr int kMaxReceiveBytes = 64 << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  if (!file) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  return text;
}

}  // namespace

absl::Status ValidateAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) {
    if (address.size() > 5) return absl::OkStatus();
  } else {
    const size_t colon = address.rfind(':');
    uint32_t port = 0;
    if (colon != std::string::npos && colon > 0 &&
        absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 &&
        port < 65536) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "server address '", address, "' is neither HOST:PORT nor unix:PATH"));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(
    const ChannelOptions& options) {
  absl::Status status = ValidateAddress(options.address);
  if (!status.ok()) return status;
  if (!options.tls && !options.ca_file.empty()) {
    return absl::InvalidArgumentError("a CA file is given but TLS is off");
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (options.tls) {
    grpc::SslCredentialsOptions ssl;
    if (!options.ca_file.empty()) {
      absl::StatusOr<std::string> roots = ReadFile(options.ca_file);
      if (!roots.ok()) return roots.status();
      ssl.pem_root_certs = *roots;
    }
    credentials = grpc::SslCredentials(ssl);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  if (options.own_connection) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  }
  if (options.lean) {
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_CENSUS, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  }
  if (options.window_bytes > 0) {
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                     options.window_bytes);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  return grpc::CreateCustomChannel(options.address, credentials, arguments);
}

}  // namespace txl
