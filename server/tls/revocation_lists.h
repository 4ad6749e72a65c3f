#pragma once

// Certificates that their authority has revoked: lists as in RFC 5280,
// section 5.

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace txl {

// Thread-safe once it is made.
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

}  // namespace txl
