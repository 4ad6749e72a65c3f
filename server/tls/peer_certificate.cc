#include "server/tls/peer_certificate.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>

namespace txl {
namespace {

// "" for a text that holds a NUL, by which two readers name two peers.
std::string TextOf(const ASN1_STRING* value) {
  unsigned char* utf8 = nullptr;
  const int bytes = ASN1_STRING_to_UTF8(&utf8, value);
  if (bytes < 0) return "";
  std::string text(reinterpret_cast<char*>(utf8), static_cast<size_t>(bytes));
  OPENSSL_free(utf8);
  return text.find('\0') == std::string::npos ? text : "";
}

// The last one, which is the most specific.
std::string CommonNameOf(const X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  std::string name;
  int at = -1;
  while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0) {
    name = TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  return name;
}

std::vector<std::string> UrisOf(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
          certificate, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    std::string uri = TextOf(name->d.uniformResourceIdentifier);
    if (!uri.empty()) uris.push_back(std::move(uri));
  }
  return uris;
}

}  // namespace

std::optional<PeerCertificate> PeerCertificateOf(const SSL* connection) {
  const X509* certificate = SSL_get0_peer_certificate(connection);
  // Without a check that was asked for, the result says nothing.
  if (certificate == nullptr ||
      (SSL_get_verify_mode(connection) & SSL_VERIFY_PEER) == 0 ||
      SSL_get_verify_result(connection) != X509_V_OK) {
    return std::nullopt;
  }
  return PeerCertificate{CommonNameOf(certificate), UrisOf(certificate)};
}

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
