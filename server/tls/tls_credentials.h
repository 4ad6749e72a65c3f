#pragma once

// What a server shows of itself in a TLS handshake and asks of its clients:
// read from files and checked, so that whatever is here can be served with.

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace txl {

// Certificates that their authority has revoked: lists as in RFC 5280,
// section 5. Thread-safe once it is made.
class RevocationLists {
 public:
  RevocationLists() = default;  // which revoke nothing

  // Reads one list or more, one of each authority at most; `context`, which has
  // the authorities, refuses whom they name in its handshakes from then on. An
  // authority without a list has revoked nothing, and a list whose end passes
  // meanwhile stays in use.
  // Errors (InvalidArgument): no PEM list, one that none of the authorities has
  // signed or was allowed to, one that begins later, one of a part of what is
  // revoked (deltas and lists by reason have critical extensions).
  static absl::StatusOr<RevocationLists> Use(const std::string& pem,
                                             SSL_CTX* context);

  // Whether one of them names it. `certificate` was verified.
  bool Revoke(const X509* certificate) const;
  // Whether they revoke a certificate of `pem`. True if it has no certificate.
  bool RevokeAnyOf(const std::string& pem) const;

  // When the first list must have been replaced; InfiniteFuture: no such time.
  absl::Time end() const { return end_; }

 private:
  std::vector<std::shared_ptr<X509_CRL>> lists_;
  absl::Time end_ = absl::InfiniteFuture();
};

// Paths of PEM files: the flags --tls-cert, --tls-key, --tls-client-ca and
// --tls-crl.
struct TlsFiles {
  std::string certificate;  // the server's, then those that signed it
  std::string key;          // of the first certificate, without a passphrase
  // Who signs clients' certificates; empty: clients need none.
  std::string client_ca;
  // Which of those are revoked; empty: none.
  std::string revoked = {};
};

// The bytes of those files; empty where there is no file.
struct TlsTexts {
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string revoked;

  bool operator==(const TlsTexts&) const = default;
};

struct TlsCredentials {
  TlsTexts texts;
  // TLS 1.2 and 1.3, HTTP/1.1 as the only protocol, no resumption (a client's
  // certificate is verified on every connection). SSL_new makes a connection's
  // state of it; thread-safe.
  std::shared_ptr<SSL_CTX> context;
  absl::Time not_before;    // of the server's own certificate
  absl::Time not_after;     // of the server's own certificate
  RevocationLists revoked;  // of clients' ones; `context` refuses them
};

// Errors name the flag and the file: it cannot be read, is not a regular file
// or is too large, or everybody may read the key (FailedPrecondition).
absl::StatusOr<TlsTexts> ReadTlsTexts(const TlsFiles& files);

// Errors (InvalidArgument) name the flag and the file: no PEM, a key that is
// encrypted or another certificate's, a certificate that is weaker than
// OpenSSL's security level 2, a list that RevocationLists does not use, and
// what CheckEnds says.
absl::StatusOr<std::shared_ptr<const TlsCredentials>> MakeTlsCredentials(
    TlsTexts texts, const TlsFiles& files);

// Whether all of it is still to be used at `now`. Errors (InvalidArgument) name
// the flag and the file: the server's certificate or a list has expired.
absl::Status CheckEnds(const TlsCredentials& credentials, const TlsFiles& files,
                       absl::Time now);

// Reads and makes, one after the other.
absl::StatusOr<std::shared_ptr<const TlsCredentials>> LoadTlsCredentials(
    const TlsFiles& files);

}  // namespace txl
