#include "server/tls/tls_credentials.h"

#include <fcntl.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

// A deleter for std::unique_ptr of what OpenSSL frees by function `Free`.
template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;

// Reads `text`, which has to outlive it.
Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// One that cannot be read has passed.
absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTimeT(timegm(&parts));
}

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

namespace {

constexpr int64_t kMostFileBytes = 1 << 20;
// Forward secrecy and authenticated encryption; TLS 1.3 has nothing else.
constexpr char kCiphersOfTls12[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
// As on the wire: its length before it.
constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// A file, and how messages call it.
struct Source {
  absl::string_view flag;
  const std::string& path;

  std::string name() const { return absl::StrCat(flag, " ", path, ": "); }
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(name(), what));
  }
  // With OpenSSL's own reason.
  absl::Status Refused(absl::string_view what) const {
    const char* reason = ERR_reason_error_string(ERR_get_error());
    ERR_clear_error();
    return Wrong(absl::StrCat(what, reason == nullptr ? "" : ": ",
                              reason == nullptr ? "" : reason));
  }
};

Source CertificateSource(const TlsFiles& files) {
  return {"--tls-cert", files.certificate};
}
Source KeySource(const TlsFiles& files) { return {"--tls-key", files.key}; }
Source ClientCaSource(const TlsFiles& files) {
  return {"--tls-client-ca", files.client_ca};
}
Source RevokedSource(const TlsFiles& files) {
  return {"--tls-crl", files.revoked};
}

absl::Status OfErrno(const Source& source) {
  return absl::ErrnoToStatus(errno,
                             absl::StrCat(source.flag, " ", source.path));
}

absl::StatusOr<std::string> ReadSource(const Source& source, bool secret) {
  // Not blocking: a pipe is no file, and nobody may write to it.
  const int fd = open(source.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OfErrno(source);
  const absl::Cleanup close_it = [fd] { close(fd); };
  struct stat found = {};
  if (fstat(fd, &found) != 0) return OfErrno(source);
  if (!S_ISREG(found.st_mode)) return source.Wrong("is not a file");
  if (secret && (found.st_mode & S_IRWXO) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        source.name(), "everybody may use it; a key needs 0640 or less"));
  }
  if (found.st_size > kMostFileBytes) return source.Wrong("is too large");
  std::string text(static_cast<size_t>(found.st_size), '\0');
  size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t got = read(fd, &text[bytes], text.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OfErrno(source);
    if (got == 0) break;
    bytes += static_cast<size_t>(got);
  }
  text.resize(bytes);
  return text;
}

// Nobody is there to be asked for one.
int NoPassphrase(char*, int, int, void*) { return 0; }

absl::StatusOr<std::vector<Certificate>> ParseCertificates(
    const std::string& text, const Source& source) {
  std::vector<Certificate> found;
  const Bio bio = BioOf(text);
  while (true) {
    Certificate next(
        PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, nullptr));
    if (next == nullptr) break;
    found.push_back(std::move(next));
  }
  // "No start line" is the end, anything else is damage.
  const unsigned long last = ERR_peek_last_error();
  if (found.empty() || ERR_GET_REASON(last) != PEM_R_NO_START_LINE) {
    return source.Refused("is not a PEM certificate");
  }
  ERR_clear_error();
  return found;
}

absl::Status UseKey(const TlsTexts& texts, const TlsFiles& files,
                    X509* certificate, SSL_CTX* context) {
  const Bio bio = BioOf(texts.key);
  const Key key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr));
  const Source source = KeySource(files);
  if (key == nullptr) {
    return source.Refused("is not a PEM key without a passphrase");
  }
  if (X509_check_private_key(certificate, key.get()) != 1) {
    return source.Refused(
        absl::StrCat("is not the key of --tls-cert ", files.certificate));
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return source.Refused("cannot be used");
  }
  return absl::OkStatus();
}

absl::Status RequireClients(const TlsTexts& texts, const TlsFiles& files,
                            SSL_CTX* context) {
  const Source source = ClientCaSource(files);
  TXL_ASSIGN_OR_RETURN(const std::vector<Certificate> roots,
                       ParseCertificates(texts.client_ca, source));
  for (const Certificate& root : roots) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root.get()) != 1 ||
        SSL_CTX_add_client_CA(context, root.get()) != 1) {
      return source.Refused("cannot be used");
    }
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  return absl::OkStatus();
}

absl::StatusOr<RevocationLists> UseLists(const TlsTexts& texts,
                                         const TlsFiles& files,
                                         SSL_CTX* context) {
  auto lists = RevocationLists::Use(texts.revoked, context);
  if (lists.ok()) return lists;
  return RevokedSource(files).Wrong(lists.status().message());
}

absl::Status CheckEnd(const Source& source, absl::Time end, absl::Time now) {
  if (end > now) return absl::OkStatus();
  return source.Wrong(absl::StrCat(
      "has expired at ",
      absl::FormatTime(absl::RFC3339_sec, end, absl::UTCTimeZone())));
}

// Who offers protocols has to offer HTTP/1.1, so that no client's talk to
// another server means something here.
int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_bytes,
                   const unsigned char* offered, unsigned int offered_bytes,
                   void*) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(
      &chosen, out_bytes, kHttp11, sizeof(kHttp11), offered, offered_bytes);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK
                                         : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::shared_ptr<SSL_CTX> NewContext() {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                   &SSL_CTX_free);
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), kCiphersOfTls12);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION |
                                         SSL_OP_NO_COMPRESSION |
                                         SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  // A connection that waits keeps no buffers of 16 KiB.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context.get(), &ChooseProtocol, nullptr);
  return context;
}

}  // namespace

absl::StatusOr<TlsTexts> ReadTlsTexts(const TlsFiles& files) {
  TlsTexts texts;
  TXL_ASSIGN_OR_RETURN(texts.certificate,
                       ReadSource(CertificateSource(files), /*secret=*/false));
  TXL_ASSIGN_OR_RETURN(texts.key, ReadSource(KeySource(files), true));
  if (!files.client_ca.empty()) {
    TXL_ASSIGN_OR_RETURN(texts.client_ca,
                         ReadSource(ClientCaSource(files), false));
  }
  if (!files.revoked.empty()) {
    TXL_ASSIGN_OR_RETURN(texts.revoked,
                         ReadSource(RevokedSource(files), false));
  }
  return texts;
}

absl::StatusOr<std::shared_ptr<const TlsCredentials>> MakeTlsCredentials(
    TlsTexts texts, const TlsFiles& files) {
  ERR_clear_error();
  const auto made = std::make_shared<TlsCredentials>();
  made->context = NewContext();
  SSL_CTX* context = made->context.get();
  if (context == nullptr) {
    return absl::ResourceExhaustedError("OpenSSL has no memory");
  }
  const Source source = CertificateSource(files);
  TXL_ASSIGN_OR_RETURN(std::vector<Certificate> chain,
                       ParseCertificates(texts.certificate, source));
  made->not_before = TimeOf(X509_get0_notBefore(chain[0].get()));
  made->not_after = TimeOf(X509_get0_notAfter(chain[0].get()));
  if (SSL_CTX_use_certificate(context, chain[0].get()) != 1) {
    return source.Refused("cannot be used");
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return source.Refused("cannot be used");
    }
  }
  TXL_RETURN_IF_ERROR(UseKey(texts, files, chain[0].get(), context));
  if (!files.client_ca.empty()) {
    TXL_RETURN_IF_ERROR(RequireClients(texts, files, context));
  }
  if (!files.revoked.empty()) {
    TXL_ASSIGN_OR_RETURN(made->revoked, UseLists(texts, files, context));
  }
  TXL_RETURN_IF_ERROR(CheckEnds(*made, files, absl::Now()));
  made->texts = std::move(texts);
  return std::shared_ptr<const TlsCredentials>(made);
}

absl::Status CheckEnds(const TlsCredentials& credentials, const TlsFiles& files,
                       absl::Time now) {
  TXL_RETURN_IF_ERROR(
      CheckEnd(CertificateSource(files), credentials.not_after, now));
  return CheckEnd(RevokedSource(files), credentials.revoked.end(), now);
}

absl::StatusOr<std::shared_ptr<const TlsCredentials>> LoadTlsCredentials(
    const TlsFiles& files) {
  TXL_ASSIGN_OR_RETURN(TlsTexts texts, ReadTlsTexts(files));
  return MakeTlsCredentials(std::move(texts), files);
}

}  // namespace txl
