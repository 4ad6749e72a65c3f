#pragma once

// Whom a client's certificate names.

#include <openssl/types.h>

#include <optional>
#include <string>
#include <vector>

namespace txl {

// Names in a certificate that was verified against --tls-client-ca.
struct PeerCertificate {
  std::string common_name;        // of its subject, UTF-8; empty: it has none
  std::vector<std::string> uris;  // of its subjectAltName, in their order

  bool operator==(const PeerCertificate&) const = default;
};

// The peer's of a handshake that is done; absent: it showed none, or none that
// was verified.
std::optional<PeerCertificate> PeerCertificateOf(const SSL* connection);

// A TLS client's first bytes.

// A ClientHello that offers HTTP/2 (RFC 8446, 4.1.2), which a server of TLS
// answers with its own.
std::string ClientHello();

}  // namespace txl
