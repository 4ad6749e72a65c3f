#include "server/rpc/tls_server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>

#include "absl/synchronization/mutex.h"

namespace txl {
namespace {

grpc_ssl_server_certificate_config* MakeConfig(const TlsTexts& texts) {
  const grpc_ssl_pem_key_cert_pair pair = {texts.key.c_str(),
                                           texts.certificate.c_str()};
  return grpc_ssl_server_certificate_config_create(
      texts.client_ca.empty() ? nullptr : texts.client_ca.c_str(), &pair, 1);
}

// The C++ API of gRPC 1.51 has no certificates that change but experimental
// ones; its C API does.
class RenewedCredentials final : public grpc::ServerCredentials {
 public:
  explicit RenewedCredentials(const CertificateWatch* certificates)
      : certificates_(certificates),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                certificates->verifies_clients()
                    ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                    : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
                &Fetch, this))) {}
  ~RenewedCredentials() override {
    grpc_server_credentials_release(credentials_);
  }

  // Nobody sets one.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC asks before every handshake, from any of its threads.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<RenewedCredentials*>(self)->Renew(config);
  }

  grpc_ssl_certificate_config_reload_status Renew(
      grpc_ssl_server_certificate_config** config) {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<const TlsCredentials> now = certificates_->Current();
    if (now == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    *config = MakeConfig(now->texts);
    given_ = std::move(now);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const CertificateWatch* const certificates_;
  absl::Mutex mutex_;
  std::shared_ptr<const TlsCredentials> given_ ABSL_GUARDED_BY(mutex_);
  grpc_server_credentials* const credentials_;  // last: it may call Fetch
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(
    const CertificateWatch* certificates) {
  return std::make_shared<RenewedCredentials>(certificates);
}

}  // namespace txl
