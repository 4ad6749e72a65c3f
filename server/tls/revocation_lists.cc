#include "server/tls/revocation_lists.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/tls/openssl_types.h"

namespace txl {
namespace {

// Whether what was read last is the text's end, not damage.
bool AtEnd() {
  const unsigned long last = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_LIB(last) == ERR_LIB_PEM &&
         ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
}

// Whether one of the authorities has signed it, and may.
bool IsSigned(X509_CRL* list, X509_STORE* authorities) {
  const STACK_OF(X509_OBJECT)* all = X509_STORE_get0_objects(authorities);
  for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
    X509* one = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
    // Two of one name differ in their keys.
    if (one != nullptr &&
        X509_NAME_cmp(X509_get_subject_name(one), X509_CRL_get_issuer(list)) ==
            0 &&
        (X509_get_key_usage(one) & KU_CRL_SIGN) != 0 &&
        X509_CRL_verify(list, X509_get0_pubkey(one)) == 1) {
      return true;
    }
  }
  return false;
}

absl::Status CheckList(X509_CRL* list, X509_STORE* authorities) {
  if (!IsSigned(list, authorities)) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "has a list that no authority of --tls-client-ca has signed or may "
        "sign");
  }
  if (TimeOf(X509_CRL_get0_lastUpdate(list)) > absl::Now()) {
    return absl::InvalidArgumentError("has a list that begins later");
  }
  if (X509_CRL_get_ext_by_critical(list, /*crit=*/1, /*lastpos=*/-1) >= 0) {
    return absl::InvalidArgumentError(
        "has a list of a part of what is revoked");
  }
  return absl::OkStatus();
}

// What a list lacks takes no other's certificates away.
int TolerateMissingLists(int ok, X509_STORE_CTX* handshake) {
  const int error = X509_STORE_CTX_get_error(handshake);
  if (ok == 1 || (error != X509_V_ERR_UNABLE_TO_GET_CRL &&
                  error != X509_V_ERR_CRL_HAS_EXPIRED)) {
    return ok;
  }
  X509_STORE_CTX_set_error(handshake, X509_V_OK);
  return 1;
}

}  // namespace

absl::StatusOr<RevocationLists> RevocationLists::Use(const std::string& pem,
                                                     SSL_CTX* context) {
  X509_STORE* const authorities = SSL_CTX_get_cert_store(context);
  RevocationLists used;
  const Bio bio = BioOf(pem);
  while (true) {
    const std::shared_ptr<X509_CRL> list(
        PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr),
        &X509_CRL_free);
    if (list == nullptr) break;
    TXL_RETURN_IF_ERROR(CheckList(list.get(), authorities));
    for (const auto& other : used.lists_) {
      if (X509_NAME_cmp(X509_CRL_get_issuer(other.get()),
                        X509_CRL_get_issuer(list.get())) == 0) {
        return absl::InvalidArgumentError("has two lists of one authority");
      }
    }
    const ASN1_TIME* end = X509_CRL_get0_nextUpdate(list.get());
    if (end != nullptr) used.end_ = std::min(used.end_, TimeOf(end));
    if (X509_STORE_add_crl(authorities, list.get()) != 1) {
      return absl::ResourceExhaustedError("OpenSSL has no memory");
    }
    used.lists_.push_back(list);
  }
  if (!AtEnd() || used.lists_.empty()) {
    return absl::InvalidArgumentError("is not a PEM list of revocations");
  }
  X509_STORE_set_flags(authorities,
                       X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  X509_STORE_set_verify_cb(authorities, &TolerateMissingLists);
  return used;
}

bool RevocationLists::Revoke(const X509* certificate) const {
  return std::any_of(lists_.begin(), lists_.end(), [&](const auto& list) {
    X509_REVOKED* entry = nullptr;
    // OpenSSL writes to neither, whatever it asks for.
    return X509_NAME_cmp(X509_CRL_get_issuer(list.get()),
                         X509_get_issuer_name(certificate)) == 0 &&
           X509_CRL_get0_by_cert(list.get(), &entry,
                                 const_cast<X509*>(certificate)) == 1;
  });
}

bool RevocationLists::RevokeAnyOf(const std::string& pem) const {
  const Bio bio = BioOf(pem);
  int certificates = 0;
  bool revoked = false;
  while (!revoked) {
    const std::unique_ptr<X509, decltype(&X509_free)> next(
        PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
    if (next == nullptr) break;
    ++certificates;
    revoked = Revoke(next.get());
  }
  return revoked || !AtEnd() || certificates == 0;
}

}  // namespace txl
