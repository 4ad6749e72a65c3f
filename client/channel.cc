#include "client/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/text_check.h"

namespace txl {
namespace {

constexpr int kKeepaliveMs = 60'000;
// gRPC's own second and two minutes are long for a person who waits.
constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 5'000;
// A scored chunk with alternatives for each token is larger than gRPC's 4 MiB.
constexpr int kMaxReceiveBytes = 64 << 20;

// A PEM file's text; of no path: nothing. `what` it has to hold.
absl::StatusOr<std::string> ReadPem(const std::string& path,
                                    absl::string_view what) {
  if (path.empty()) return "";
  absl::StatusOr<std::string> text = ReadUserFile(path);
  if (!text.ok()) return text;
  const bool begins = absl::StrContains(*text, "-----BEGIN ");
  if (!begins || !absl::StrContains(*text, absl::StrCat(what, "-----"))) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": holds no ", what, " in PEM"));
  }
  if (absl::StrContains(*text, "ENCRYPTED")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has a passphrase, which cannot be given"));
  }
  return text;
}

// The first object of a text in PEM, by one of OpenSSL's readers; null: none.
template <typename Object, typename Reader, typename Free>
std::unique_ptr<Object, Free> ParsePem(const std::string& text, Reader reader,
                                       Free free) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  char no_passphrase[] = "";
  return {reader(bio.get(), nullptr, nullptr, no_passphrase), free};
}

// What gRPC would only report as a server that does not answer.
absl::Status CheckUsable(const ChannelOptions& options,
                         const grpc::SslCredentialsOptions& ssl) {
  const auto ca =
      ParsePem<X509>(ssl.pem_root_certs, &PEM_read_bio_X509_AUX, &X509_free);
  const auto certificate =
      ParsePem<X509>(ssl.pem_cert_chain, &PEM_read_bio_X509_AUX, &X509_free);
  const auto key = ParsePem<EVP_PKEY>(ssl.pem_private_key,
                                      &PEM_read_bio_PrivateKey, &EVP_PKEY_free);
  const bool pair = certificate != nullptr && key != nullptr &&
                    X509_check_private_key(certificate.get(), key.get()) == 1;
  // gRPC would take what is left there for an error of its connection.
  ERR_clear_error();
  for (const auto& [path, found, what] :
       {std::tuple(&options.ca_file, ca != nullptr, "certificate"),
        std::tuple(&options.certificate_file, certificate != nullptr,
                   "certificate"),
        std::tuple(&options.tls_key_file, key != nullptr, "key")}) {
    if (!path->empty() && !found) {
      return absl::InvalidArgumentError(
          absl::StrCat(*path, ": holds no usable ", what));
    }
  }
  if (pair || options.tls_key_file.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options.tls_key_file, ": is not the key of ", options.certificate_file));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ChannelOptions& options) {
  if (options.certificate_file.empty() != options.tls_key_file.empty()) {
    return absl::InvalidArgumentError(
        "a certificate needs its key, and a key its certificate");
  }
  if (!options.tls) {
    if (options.ca_file.empty() && options.tls_key_file.empty()) {
      return grpc::InsecureChannelCredentials();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("a ", options.ca_file.empty() ? "certificate" : "CA file",
                     " is given but TLS is off"));
  }
  grpc::SslCredentialsOptions ssl;
  for (const auto& [path, what, text] :
       {std::tuple(&options.ca_file, "CERTIFICATE", &ssl.pem_root_certs),
        std::tuple(&options.certificate_file, "CERTIFICATE",
                   &ssl.pem_cert_chain),
        std::tuple(&options.tls_key_file, "PRIVATE KEY",
                   &ssl.pem_private_key)}) {
    absl::StatusOr<std::string> read = ReadPem(*path, what);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  const absl::Status usable = CheckUsable(options, ssl);
  if (!usable.ok()) return usable;
  return grpc::SslCredentials(ssl);
}

absl::StatusOr<std::string> ReadKey(const std::string& path) {
  absl::StatusOr<std::string> text = ReadUserFile(path);
  if (!text.ok()) return text.status();
  const std::string key(absl::StripAsciiWhitespace(WithoutMark(*text)));
  if (key.empty() ||
      !std::all_of(key.begin(), key.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds no key"));
  }
  return key;
}

// Sends the key with every call of a channel, whoever makes it. (gRPC's call
// credentials refuse connections without TLS, also those of loopback.)
class KeySender final : public grpc::experimental::Interceptor {
 public:
  explicit KeySender(const std::string& authorization)
      : authorization_(authorization) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::
                PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization",
                                                 authorization_);
    }
    methods->Proceed();
  }

 private:
  const std::string& authorization_;  // the factory's, which the channel keeps
};

class KeySenders final
    : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit KeySenders(const std::string& key)
      : authorization_(absl::StrCat("Bearer ", key)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new KeySender(authorization_);  // the call's
  }

 private:
  const std::string authorization_;
};

// A name or an address, of IPv6 in brackets.
bool IsHost(absl::string_view host) {
  const bool brackets =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  return !host.empty() &&
         std::all_of(host.begin(), host.end(), absl::ascii_isgraph) &&
         host.find_first_of(brackets ? "/[]" : "/:[]") ==
             absl::string_view::npos;
}

bool IsPort(absl::string_view port) {
  int number = 0;
  return std::all_of(port.begin(), port.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(port, &number) && number > 0 && number < 65536;
}

}  // namespace

absl::Status ValidateAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) {
    // gRPC takes what follows unix:// for a host, unless it is a path.
    const absl::string_view path = absl::string_view(address).substr(5);
    if (!path.empty() &&
        (!absl::StartsWith(path, "//") || absl::StartsWith(path, "///"))) {
      return absl::OkStatus();
    }
  } else {
    const size_t colon = address.rfind(':');
    if (colon != std::string::npos && IsHost(address.substr(0, colon)) &&
        IsPort(address.substr(colon + 1))) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "server address '", address, "' is neither HOST:PORT nor unix:PATH",
      absl::StartsWith(address, "unix://")
          ? "; a socket's path stands right behind unix:"
      : absl::StrContains(address, "://") ? "; it has no http:// or the like"
      : std::count(address.begin(), address.end(), ':') > 1
          ? "; an IPv6 address has brackets: [::1]:50051"
          : ""));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(
    const ChannelOptions& options) {
  absl::Status status = ValidateAddress(options.address);
  if (!status.ok()) return status;
  const auto credentials = MakeCredentials(options);
  if (!credentials.ok()) return credentials.status();
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
  if (options.key_file.empty()) {
    return grpc::CreateCustomChannel(options.address, *credentials, arguments);
  }
  const absl::StatusOr<std::string> key = ReadKey(options.key_file);
  if (!key.ok()) return key.status();
  std::vector<
      std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
      senders;
  senders.push_back(std::make_unique<KeySenders>(*key));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      options.address, *credentials, arguments, std::move(senders));
}

}  // namespace txl
