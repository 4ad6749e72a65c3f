#pragma once

// Whom a client's certificate names.

#include <openssl/types.h>

#include <optional>
#include <string>
#include <vector>

namespace txl {

// Of a certificate that was verified against --tls-client-ca.
struct PeerCertificate {
  std::string common_name;        // of its subject, UTF-8; empty: it has none
  std::vector<std::string> uris;  // of its subjectAltName, in their order

  bool operator==(const PeerCertificate&) const = default;
};

// The peer's of a handshake that is done; absent: it showed none, or none that
// was verified.
std::optional<PeerCertificate> PeerCertificateOf(const SSL* connection);

}  // namespace txl
