#include "server/exposure.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

absl::Status CheckListener(const char* flag, const std::string& listen,
                           const Exposure& exposure) {
  if (listen.empty() || IsOfThisMachine(listen) || exposure.insecure ||
      !exposure.tls.certificate.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", listen,
                   ": is beyond loopback and would have no TLS; give "
                   "--tls-cert and --tls-key, or --insecure"));
}

absl::Status CheckFiles(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(files.key.empty()
                                          ? "--tls-cert: needs --tls-key, too"
                                          : "--tls-key: needs --tls-cert, too");
  }
  if (!files.client_ca.empty() && files.certificate.empty()) {
    return absl::InvalidArgumentError(
        "--tls-client-ca: needs --tls-cert and --tls-key, too");
  }
  if (!files.revoked.empty() && files.client_ca.empty()) {
    return absl::InvalidArgumentError("--tls-crl: needs --tls-client-ca, too");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsOfThisMachine(const std::string& listen) {
  if (absl::StartsWith(listen, "unix:")) return true;
  const std::string host = listen.substr(0, listen.rfind(':'));
  in_addr v4 = {};
  // A name may begin with "127." too.
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  return host == "localhost" || host == "[::1]";
}

absl::Status CheckExposure(const Exposure& exposure) {
  TXL_RETURN_IF_ERROR(CheckFiles(exposure.tls));
  TXL_RETURN_IF_ERROR(CheckListener("--listen", exposure.listen, exposure));
  TXL_RETURN_IF_ERROR(
      CheckListener("--http-listen", exposure.http_listen, exposure));
  const std::string& admin = exposure.admin_listen;
  if (admin.empty() || IsOfThisMachine(admin)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--admin-listen ", admin,
                   ": is beyond loopback; administration is for this machine "
                   "alone"));
}

}  // namespace txl
