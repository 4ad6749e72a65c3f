#include "server/tls/client_hello.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>

namespace txl {
namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};

}  // namespace

std::string ClientHello() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()),
                                                         &SSL_free);
  if (client == nullptr) return "";
  SSL_set_alpn_protos(client.get(), kHttp2, sizeof(kHttp2));
  // Owned by `client`.
  BIO* sent = BIO_new(BIO_s_mem());
  SSL_set_bio(client.get(), BIO_new(BIO_s_mem()), sent);
  SSL_connect(client.get());  // stops where it waits for an answer
  ERR_clear_error();
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(sent, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

}  // namespace txl
