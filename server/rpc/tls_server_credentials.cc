#include "server/rpc/tls_server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>

namespace txl {
namespace {

grpc_ssl_server_certificate_config* MakeConfig(const TlsTexts& texts) {
  const grpc_ssl_pem_key_cert_pair pair = {texts.key.c_str(),
                                           texts.certificate.c_str()};
  // gRPC 1.51 aborts without roots, also where no client is asked for anything:
  // then it gets some, which it verifies nobody with.
  const std::string& roots =
      texts.client_ca.empty() ? texts.certificate : texts.client_ca;
  return grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
}

// The certificate that a connection's client has shown, and those with it.
std::string PemOf(const grpc_auth_context* connection) {
  std::string pem;
  for (const char* property : {GRPC_X509_PEM_CERT_PROPERTY_NAME,
                               GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME}) {
    auto it = grpc_auth_context_find_properties_by_name(connection, property);
    while (const auto* next = grpc_auth_property_iterator_next(&it)) {
      pem.append(next->value, next->value_length);
    }
  }
  return pem;
}

// The C++ API of gRPC 1.51 has no certificates that change but experimental
// ones; its C API does.
class OwnedCredentials final : public grpc::ServerCredentials {
 public:
  explicit OwnedCredentials(grpc_server_credentials* owned) : owned_(owned) {}
  ~OwnedCredentials() override { grpc_server_credentials_release(owned_); }

  // Nobody sets one.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), owned_);
  }

  grpc_server_credentials* const owned_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials::Make() {
  grpc_server_credentials* made =
      grpc_ssl_server_credentials_create_with_options(
          grpc_ssl_server_credentials_create_options_using_config_fetcher(
              certificates_->verifies_clients()
                  ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                  : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
              &Renew, this));
  if (certificates_->has_revocations()) {
    grpc_server_credentials_set_auth_metadata_processor(
        made, {.process = &Admit, .destroy = nullptr, .state = this});
  }
  return std::make_shared<OwnedCredentials>(made);
}

void TlsServerCredentials::Admit(void* self, grpc_auth_context* connection,
                                 const grpc_metadata*, size_t,
                                 grpc_process_auth_metadata_done_cb done,
                                 void* call) {
  const auto* const it = static_cast<TlsServerCredentials*>(self);
  const bool revoked =
      it->certificates_->Current()->revoked.RevokeAnyOf(PemOf(connection));
  done(call, nullptr, 0, nullptr, 0,
       revoked ? GRPC_STATUS_UNAUTHENTICATED : GRPC_STATUS_OK,
       revoked ? "the client's certificate is revoked" : nullptr);
}

grpc_ssl_certificate_config_reload_status TlsServerCredentials::Renew(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto* const it = static_cast<TlsServerCredentials*>(self);
  absl::MutexLock lock(&it->mutex_);
  std::shared_ptr<const TlsCredentials> now = it->certificates_->Current();
  if (now == it->given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  *config = MakeConfig(now->texts);
  it->given_ = std::move(now);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace txl
